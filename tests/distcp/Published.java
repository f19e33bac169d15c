package org.apache.hadoop.tools;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.internal.TextListener;
import org.junit.internal.RealSystem;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;

/** Runs the published tests of the given classes, without those that follow {@code --}. */
public final class Published {
  private Published() {}

  /** Exits with 1 if a test fails, or if a test to leave out does not exist. */
  public static void main(String[] arguments) throws ClassNotFoundException {
    int dashes = List.of(arguments).indexOf("--");
    Set<String> unmet = new TreeSet<>(List.of(arguments).subList(dashes + 1, arguments.length));
    Set<String> left = Set.copyOf(unmet);
    Class<?>[] classes = new Class<?>[dashes];
    for (int i = 0; i < dashes; i++) {
      classes[i] = Class.forName("org.apache.hadoop.tools." + arguments[i]);
    }
    Request request = Request.classes(classes).filterWith(new Filter() {
      @Override
      public boolean shouldRun(Description test) {
        String name = test.getTestClass() == null ? "" : test.getTestClass().getSimpleName() + "." + test.getMethodName();
        unmet.remove(name);
        return !left.contains(name);
      }

      @Override
      public String describe() {
        return "without " + left;
      }
    });
    JUnitCore core = new JUnitCore();
    core.addListener(new TextListener(new RealSystem()));
    Result result = core.run(request);
    unmet.forEach(name -> System.out.println("no such test: " + name));
    System.exit(result.wasSuccessful() && unmet.isEmpty() && result.getRunCount() > 0 ? 0 : 1);
  }
}
