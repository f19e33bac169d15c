"""Functions for test_switching_on.py and slow_cluster_mode.py that run in a session's process."""

from py4j.protocol import Py4JJavaError


def prepared(spark, arguments):
    """The error with which spark-submit ends when it prepares an application, in this JVM; None if it gets to the point
    of contacting the cluster.
    """
    jvm = spark._jvm
    environment = {"HADOOP_CONF_DIR": "/nowhere"}  # which the master yarn asks for
    words = jvm.PythonUtils.toSeq(arguments)
    try:
        parsed = jvm.org.apache.spark.deploy.SparkSubmitArguments(words, jvm.PythonUtils.toScalaMap(environment))
        jvm.org.apache.spark.deploy.SparkSubmit().prepareSubmitEnvironment(parsed, jvm.scala.Option.empty())
    except Py4JJavaError as error:
        return str(error.java_exception)
    return None


def driver_of_pod(spark, settings, jar):
    """The settings of the driver in the pod that Spark makes for an application on Kubernetes in cluster mode."""
    jvm = spark._jvm
    k8s = jvm.org.apache.spark.deploy.k8s
    conf = jvm.org.apache.spark.SparkConf(False)
    for key, value in {
        **settings,
        "spark.master": "k8s://https://127.0.0.1:1",
        "spark.submit.deployMode": "cluster",
        "spark.app.name": "any",
    }.items():
        conf.set(key, value)
    resource = k8s.submit.JavaMainAppResource(jvm.scala.Option.apply(jar))
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 0)
    driver = k8s.KubernetesConf.createDriverConf(
        conf, "spark-any", resource, "ClusterApplication", arguments, jvm.scala.Option.empty()
    )
    client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    spec = k8s.submit.KubernetesDriverBuilder().buildFromFeatures(driver, client)
    properties = spec.systemProperties().iterator()
    found = {}
    while properties.hasNext():
        pair = properties.next()
        found[pair._1()] = pair._2()
    return found
