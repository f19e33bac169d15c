package main

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The example of Amazon's documentation: GET Bucket (List Objects).
func TestASignatureIsThatOfS3(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	r := httptest.NewRequest("GET", "http://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", nil)
	r.Header.Set("X-Amz-Date", "20130524T000000Z")
	r.Header.Set("X-Amz-Content-Sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"+
		"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
	found := signatureOf(r)
	if found == nil || !found.isBy(secret, r) || found.isBy(secret+"x", r) {
		t.Fatal(found)
	}

	r.Header.Set(tokenHeader, "token")
	withToken := &signature{found.accessKey, found.scope, append(found.headers, "x-amz-security-token"), ""}
	withToken.signAnew("other", "secret", r)
	if again := signatureOf(r); again == nil || again.accessKey != "other" || !again.isBy("secret", r) || r.Header.Get(tokenHeader) != "" ||
		strings.Join(again.headers, ";") != "host;x-amz-content-sha256;x-amz-date" {
		t.Error(r.Header)
	}
}
