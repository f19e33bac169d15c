package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCertificateIsTrustedFromItsFileOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "certificate.pem")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if listener, err = withTLS(listener, file); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	front.Listener = listener
	front.Start()
	defer front.Close()
	pem, err := os.ReadFile(file)
	trusted := x509.NewCertPool()
	if err != nil || !trusted.AppendCertsFromPEM(pem) {
		t.Fatalf("%v %s", err, pem)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		address := "https://" + net.JoinHostPort(host, port)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
		if response, err := client.Get(address); err != nil || response.StatusCode != 204 || response.ProtoMajor != 1 {
			t.Errorf("%s: %v %v", host, response, err)
		}
		if _, err := http.Get(address); err == nil {
			t.Errorf("%s: trusted without its file", host)
		}
	}
}
