// s3proxy is a proxy in front of an S3 server on the same machine: it delays every request, counts requests by
// operation, and makes chosen ones fail. It examines only methods, paths and queries, so requests and signatures pass
// unchanged, except those with temporary credentials (access.go). The proxy itself serves synthetic buckets, which need
// no disk (synthetic.go).
//
//	s3proxy -server http://127.0.0.1:7070 [-listen 127.0.0.1:0] [-log FILE] [-tls FILE] [-synthetic BUCKET=RULE]...
//
// prints the address that it listens on. A RULE is dirs:1000,files:1000,bytes:20,lines:1,order:reverse; only files is
// required. With -tls, clients must use TLS and trust the certificate that the FILE then contains. Temporary
// credentials stand for $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY. Paths below /__bed/, which cannot be a bucket, are
// its own:
//
//	GET  /__bed/statistics    counters as latfs prints them
//	POST /__bed/reset         sets them to zero
//	POST /__bed/delay?us=N    sets the delay of a request
//	POST /__bed/bandwidth?total=N&connection=N
//	                          limits the bodies of GetObject in total and for each connection, in bytes/s; 0: no limit
//	POST /__bed/rate?requests=N
//	                          refuses requests above that many per second, with 503; 0: no limit (rate.go)
//	GET  /__bed/refused       the number of requests refused since then
//	POST /__bed/faults        replaces the faults by a JSON list of others (fault.go)
//	POST /__bed/access        replaces the rules about tokens and other headers that buckets require (access.go)
//	POST /__bed/credentials   makes temporary credentials
//	POST /__bed/revoke?bucket=NAME
//	                          revokes those that have been used for a bucket
//	GET  /__bed/tokens        how many there are and how many were used, and how many requests the rules have refused
//	GET  /__bed/held          the number of requests that faults are holding now
//	GET  /__bed/struck        the number of requests that the faults have hit
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/url"
	"os"
)

func main() {
	server := flag.String("server", "", "URL of the S3 server")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	requests := flag.String("log", "", "file that gets a line for each request")
	certificate := flag.String("tls", "", "listen with TLS; the file gets the self-signed certificate as PEM")
	synthetic := map[string]*syntheticBucket{}
	flag.Func("synthetic", "bucket that follows a rule: BUCKET=dirs:1000,files:1000,bytes:20", func(text string) error {
		bucket, err := parseSynthetic(text)
		if err == nil {
			synthetic[bucket.name] = bucket
		}
		return err
	})
	flag.Parse()
	upstream, err := url.Parse(*server)
	if err != nil || upstream.Host == "" {
		log.Fatalf("s3proxy: -server is not a URL: %q", *server)
	}
	proxy := newProxy(upstream)
	proxy.synthetic = synthetic
	proxy.access = newAccess(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"))
	if *requests != "" {
		file, err := os.Create(*requests)
		if err != nil {
			log.Fatalf("s3proxy: %v", err)
		}
		proxy.requests = file
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatalf("s3proxy: %v", err)
	}
	if *certificate != "" {
		if listener, err = withTLS(listener, *certificate); err != nil {
			log.Fatalf("s3proxy: %v", err)
		}
	}
	fmt.Println(listener.Addr())
	log.Fatal(proxy.server().Serve(listener))
}
