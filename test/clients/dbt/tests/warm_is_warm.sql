select * from {{ ref('warm') }} w join {{ ref('readings') }} r on r.id = w.id where r.celsius <= 2
