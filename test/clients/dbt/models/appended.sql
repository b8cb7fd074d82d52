{{ config(materialized='incremental', incremental_strategy='append') }}
select id, at from {{ ref('readings') }}
{% if is_incremental() %}
where at > (select max(at) from {{ this }})
{% endif %}
