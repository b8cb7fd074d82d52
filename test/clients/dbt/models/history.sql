{{ config(materialized='incremental', unique_key='id') }}
select id, at, celsius from {{ ref('readings') }}
{% if is_incremental() %}
where at >= (select max(at) from {{ this }})
{% endif %}
