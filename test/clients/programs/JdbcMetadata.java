import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.postgresql.util.PSQLException;

/** What the JDBC driver reports about the database. Prints a JSON object of string lists. */
public final class JdbcMetadata {
  private static final Map<String, List<String>> OUT = new LinkedHashMap<>();

  /** A metadata query to the driver. */
  private interface Question {
    ResultSet ask() throws SQLException;
  }

  /** Records the named columns of all rows, or the reason why there are none. */
  private static void tell(String name, Question question, String... columns) {
    List<String> rows = new ArrayList<>();
    OUT.put(name, rows);
    try (ResultSet found = question.ask()) {
      while (found.next()) {
        List<String> cells = new ArrayList<>();
        for (String column : columns) {
          cells.add(found.getString(column));
        }
        rows.add(String.join("|", cells));
      }
    } catch (PSQLException error) {
      rows.add(error.getSQLState() + " " + error.getMessage());
    } catch (SQLException error) {
      rows.add(error.toString());
    }
  }

  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.setProperty("user", "admin");
    settings.setProperty("password", "quest");
    String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/qdb";
    try (Connection connection = DriverManager.getConnection(url, settings)) {
      try (Statement statement = connection.createStatement()) {
        statement.execute("CREATE TABLE jm (ts TIMESTAMP NOT NULL, b BOOLEAN, h SMALLINT, i INT, "
            + "l BIGINT, f REAL, d DOUBLE PRECISION DEFAULT 1.5, v VARCHAR, u UUID, "
            + "n NUMERIC(18,3))");
        statement.execute("CREATE VIEW jmv AS (SELECT i, d FROM jm)");
      }
      objects(connection.getMetaData());
      keys(connection.getMetaData());
      others(connection.getMetaData());
      ofResult(connection);
    }
    List<String> parts = new ArrayList<>();
    OUT.forEach((name, rows) -> parts.add(quoted(name) + ": ["
        + String.join(", ", rows.stream().map(JdbcMetadata::quoted).toList()) + "]"));
    System.out.println("{" + String.join(", ", parts) + "}");
  }

  private static void objects(DatabaseMetaData of) {
    tell("catalogs", of::getCatalogs, "TABLE_CAT");
    tell("schemas", of::getSchemas, "TABLE_SCHEM");
    tell("tableTypes", of::getTableTypes, "TABLE_TYPE");
    String[] kinds = {"TABLE", "VIEW"};
    tell("tables", () -> of.getTables(null, "public", "jm%", kinds),
        "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
    tell("allTables", () -> of.getTables(null, null, "jm", null), "TABLE_NAME", "TABLE_TYPE");
    tell("systemTables", () -> of.getTables(null, "pg_catalog", "pg_class", null),
        "TABLE_NAME", "TABLE_TYPE");
    tell("columns", () -> of.getColumns(null, "public", "jm", null), "COLUMN_NAME", "DATA_TYPE",
        "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE", "ORDINAL_POSITION",
        "COLUMN_DEF");
    tell("viewColumns", () -> of.getColumns(null, null, "jmv", "%"), "COLUMN_NAME", "TYPE_NAME");
  }

  private static void keys(DatabaseMetaData of) {
    tell("primaryKeys", () -> of.getPrimaryKeys(null, "public", "jm"), "COLUMN_NAME");
    tell("importedKeys", () -> of.getImportedKeys(null, "public", "jm"), "FKCOLUMN_NAME");
    tell("exportedKeys", () -> of.getExportedKeys(null, "public", "jm"), "FKCOLUMN_NAME");
    tell("indexes", () -> of.getIndexInfo(null, "public", "jm", false, false), "INDEX_NAME");
    tell("uniqueIndexes", () -> of.getIndexInfo(null, "public", "jm", true, true), "INDEX_NAME");
    tell("bestRow", () -> of.getBestRowIdentifier(null, "public", "jm", 0, true), "COLUMN_NAME");
    tell("versions", () -> of.getVersionColumns(null, "public", "jm"), "COLUMN_NAME");
  }

  private static void others(DatabaseMetaData of) {
    tell("types", of::getTypeInfo, "TYPE_NAME", "DATA_TYPE");
    tell("functions", () -> of.getFunctions(null, null, "abs"), "FUNCTION_NAME");
    tell("functionColumns", () -> of.getFunctionColumns(null, null, "abs", null), "COLUMN_NAME");
    tell("procedures", () -> of.getProcedures(null, null, "nothing"), "PROCEDURE_NAME");
    tell("userTypes", () -> of.getUDTs(null, null, "%", null), "TYPE_NAME");
    tell("tablePrivileges", () -> of.getTablePrivileges(null, "public", "jm"), "PRIVILEGE");
    tell("columnPrivileges", () -> of.getColumnPrivileges(null, "public", "jm", "i"), "PRIVILEGE");
    tell("clientInfo", of::getClientInfoProperties, "NAME");
  }

  /** The driver looks up the columns of a result in the catalog. */
  private static void ofResult(Connection connection) throws SQLException {
    List<String> rows = new ArrayList<>();
    OUT.put("result", rows);
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery("SELECT * FROM jm")) {
      var of = found.getMetaData();
      for (int column = 1; column <= of.getColumnCount(); column += 1) {
        rows.add(String.join("|", of.getColumnName(column), of.getColumnTypeName(column),
            of.getColumnClassName(column), String.valueOf(of.isNullable(column)),
            String.valueOf(of.isAutoIncrement(column))));
      }
    }
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
  }
}
