import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

/** The JDBC driver against a server. Prints a JSON list of strings. */
public final class Jdbc {
  private static final List<String> OUT = new ArrayList<>();

  private static void tell(Object value) {
    OUT.add('"' + String.valueOf(value).replace("\\", "\\\\").replace("\"", "\\\"")
        .replace("\n", "\\n").replace("\t", "\\t") + '"');
  }

  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.setProperty("user", "admin");
    settings.setProperty("password", "quest");
    // Requests binary rows from the first execution.
    settings.setProperty("prepareThreshold", "-1");
    String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/qdb";
    try (Connection connection = DriverManager.getConnection(url, settings)) {
      types(connection);
      batch(connection);
      cursor(connection);
      savepoint(connection);
      cancel(connection);
      copy(connection);
      growing(connection);
      tell(connection.getMetaData().getDatabaseProductVersion());
      tell(connection.isValid(5));
    }
    System.out.println("[" + String.join(", ", OUT) + "]");
  }

  private static void types(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE jd (ts TIMESTAMP, b BOOLEAN, h SHORT, i INT, l LONG, f FLOAT, "
          + "d DOUBLE, s SYMBOL, v VARCHAR, u UUID, n DECIMAL(18,3)) TIMESTAMP(ts) PARTITION BY DAY");
    }
    String insert = "INSERT INTO jd VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(insert)) {
      statement.setTimestamp(1, Timestamp.valueOf("2024-01-01 00:00:00.000007"));
      statement.setBoolean(2, true);
      statement.setShort(3, (short) -7);
      statement.setInt(4, 123456);
      statement.setLong(5, (1L << 53) + 1);
      statement.setFloat(6, 1.5f);
      statement.setDouble(7, -2.25);
      statement.setString(8, "sym");
      statement.setString(9, "it's");
      statement.setObject(10, UUID.fromString("11111111-2222-3333-4444-555555555555"));
      statement.setBigDecimal(11, new BigDecimal("12.500"));
      tell(statement.executeUpdate());
    }
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM jd WHERE i = ?")) {
      statement.setInt(1, 123456);
      ResultSet rows = statement.executeQuery();
      rows.next();
      for (int column = 1; column <= 11; column += 1) {
        tell(rows.getObject(column));
      }
    }
  }

  private static void batch(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("INSERT INTO jd (ts, i) VALUES (?, ?)")) {
      for (int row = 0; row < 500; row += 1) {
        statement.setTimestamp(1, new Timestamp(0));
        statement.setInt(2, row);
        statement.addBatch();
      }
      tell(statement.executeBatch().length);
    }
    tell(single(connection, "SELECT count() FROM jd"));
  }

  private static void cursor(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(7);
      ResultSet rows = statement.executeQuery("SELECT x FROM long_sequence(100)");
      long sum = 0;
      while (rows.next()) {
        sum += rows.getLong(1);
      }
      tell(sum);
    }
    connection.commit();
  }

  private static void savepoint(Connection connection) throws SQLException {
    Savepoint before = connection.setSavepoint();
    try {
      single(connection, "SELECT * FROM nowhere");
    } catch (PSQLException error) {
      tell(error.getSQLState() + " " + error.getServerErrorMessage().getPosition());
    }
    connection.rollback(before);
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("INSERT INTO jd (ts, i) VALUES (0, -1)");
    }
    connection.commit();
    connection.setAutoCommit(true);
    tell(single(connection, "SELECT count() FROM jd WHERE i = -1"));
  }

  private static void cancel(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      statement.executeQuery("SELECT sum(sqrt(x)) AS jdbc FROM long_sequence(100000000000)");
    } catch (SQLException error) {
      tell(error.getSQLState());
    }
  }

  private static void copy(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE jdc (a INT, v VARCHAR)");
    }
    var copies = connection.unwrap(PGConnection.class).getCopyAPI();
    StringReader data = new StringReader("1,\"a,b\"\n2,\n".repeat(10_000));
    tell(copies.copyIn("COPY jdc FROM STDIN (FORMAT csv)", data));
    StringWriter target = new StringWriter();
    tell(copies.copyOut("COPY (SELECT * FROM jdc LIMIT 2) TO STDOUT", target));
    tell(target);
    try {
      copies.copyIn("COPY jdc FROM STDIN", new StringReader("1\tx\nno\ty\n"));
    } catch (PSQLException error) {
      tell(error.getSQLState() + " " + error.getServerErrorMessage().getWhere());
    }
    tell(single(connection, "SELECT count() FROM jdc"));
  }

  /** Adds a column to the table of a prepared statement, which the driver then prepares again. */
  private static void growing(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        PreparedStatement prepared = connection.prepareStatement("SELECT * FROM jdg")) {
      statement.execute("CREATE TABLE jdg AS (SELECT 1 AS a)");
      for (int run = 0; run < 4; run++) {
        if (run == 2) {
          statement.execute("ALTER TABLE jdg ADD COLUMN b INT");
        }
        try (ResultSet rows = prepared.executeQuery()) {
          tell(rows.getMetaData().getColumnCount());
        }
      }
    }
  }

  private static Object single(Connection connection, String query) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(query)) {
      rows.next();
      return rows.getObject(1);
    }
  }
}
