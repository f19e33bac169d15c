module millstream/testbed/s3proxy

go 1.21
