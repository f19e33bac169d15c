//! The files of a data set, packed for Spark.
