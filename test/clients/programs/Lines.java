import io.questdb.client.Sender;
import java.time.temporal.ChronoUnit;

/** Writes rows with QuestDB's Java client, given a configuration, table and protocol version. */
public final class Lines {
  public static void main(String[] args) {
    int version = Integer.parseInt(args[2]);
    try (Sender sender = Sender.fromConfig(args[0])) {
      for (int row = 0; row < 3; row++) {
        sender.table(args[1]).symbol("s", "x y,=" + row).doubleColumn("f", row + 0.5)
            .longColumn("i", row).boolColumn("b", row > 0)
            .stringColumn("v", "a \"quoted\"\nline \\ " + row)
            .timestampColumn("m", row + 1, ChronoUnit.MICROS);
        if (version >= 2) {
          sender.doubleArray("a", new double[][] {{row, 1.5}, {2.5, 3.5}});
        }
        if (version >= 3) {
          sender.decimalColumn("d", "-123.45");
        }
        sender.at(1_700_000_000_000_000_000L + row, ChronoUnit.NANOS);
      }
      sender.flush();
    }
    System.out.println("sent");
  }
}
