-- check: version
SELECT version();
-- check: types
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid
FROM (
  SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull,
    typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname,
    elemcls.relkind AS elemrelkind,
    CASE WHEN elemproc.proname = 'array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype
  FROM (
    SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid,
      CASE WHEN proc.proname = 'array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
      CASE
        WHEN proc.proname = 'array_recv' THEN typ.typelem
        WHEN typ.typtype = 'r' THEN rngsubtype
        WHEN typ.typtype = 'm'
          THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid)
        WHEN typ.typtype = 'd' THEN typ.typbasetype
      END AS elemtypoid
    FROM pg_type AS typ
    LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
    LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive
    LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)
  ) AS typ
  LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid
  LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid)
  LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive
) AS t
JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
WHERE typtype IN ('b', 'r', 'm', 'e', 'd') OR
  (typtype = 'c' AND relkind = 'c') OR
  (typtype = 'p' AND typname IN ('record', 'void', 'unknown')) OR
  (typtype = 'a' AND (
    elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR
    (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR
    (elemtyptype = 'c' AND elemrelkind = 'c')
  ))
ORDER BY CASE
  WHEN typtype IN ('b', 'e', 'p') THEN 0
  WHEN typtype = 'c' THEN 1
  WHEN typtype = 'r' THEN 2
  WHEN typtype = 'm' THEN 3
  WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4
  WHEN typtype = 'a' THEN 5
  WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6
END;
-- check: attributes of composite types
SELECT typ.oid, att.attname, att.atttypid
FROM pg_type AS typ
JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace)
JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid)
WHERE (typ.typtype = 'c' AND cls.relkind = 'c') AND attnum > 0 AND NOT attisdropped
ORDER BY typ.oid, att.attnum;
-- check: enum labels
SELECT pg_type.oid, enumlabel FROM pg_enum
JOIN pg_type ON pg_type.oid = enumtypid ORDER BY oid, enumsortorder;
-- check: schema of columns
SELECT table_catalog, table_schema, table_name, column_name, ordinal_position, column_default,
  is_nullable, data_type, character_maximum_length, character_octet_length, numeric_precision,
  numeric_precision_radix, numeric_scale, datetime_precision, character_set_catalog,
  character_set_schema, character_set_name, collation_catalog
FROM information_schema.columns WHERE table_name = 'rec_readings';
-- check: reset of a pooled connection
DISCARD ALL;
