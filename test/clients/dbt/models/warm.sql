{{ config(materialized='view') }}
select id, at, place from {{ ref('readings') }} where celsius > 2
