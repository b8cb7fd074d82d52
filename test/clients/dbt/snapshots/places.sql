{% snapshot places %}
{{ config(target_schema='public', unique_key='id', strategy='check', check_cols=['celsius']) }}
select id, place, celsius from {{ ref('readings') }}
{% endsnapshot %}
