package io.millstream.hadoop.fs;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Hadoop's cache of constructors.
 *
 * <p>Hadoop, Spark and Hive create file systems and input formats with {@link ReflectionUtils#newInstance}, which looks
 * the constructor of a class up in this cache. After a constructor is replaced there, all of them get instances of
 * another class.
 */
public final class HadoopConstructors {
    private HadoopConstructors() {}

    /**
     * Makes Hadoop create instances of one class where another is requested.
     *
     * @throws ReflectiveOperationException if this Hadoop has no such cache, or does not use it
     */
    public static void replace(Class<?> requested, Class<?> made) throws ReflectiveOperationException {
        Field field = ReflectionUtils.class.getDeclaredField("CONSTRUCTOR_CACHE");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<Class<?>, Constructor<?>> constructors = (Map<Class<?>, Constructor<?>>) field.get(null);
        constructors.put(requested, made.getConstructor());
        if (!isReplaced(requested, made)) {
            throw new ReflectiveOperationException("it does not use its constructor cache");
        }
    }

    /** Whether Hadoop creates instances of one class where another is requested. */
    public static boolean isReplaced(Class<?> requested, Class<?> made) {
        return made.isInstance(ReflectionUtils.newInstance(requested, new Configuration(false)));
    }
}
