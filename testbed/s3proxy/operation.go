package main

import (
	"net/http"
	"strings"
)

// operationOf names a request as the S3 API does. Buckets are in the path, as in http://host/bucket/key.
func operationOf(r *http.Request) string {
	query := r.URL.Query()
	copies := r.Header.Get("X-Amz-Copy-Source") != ""
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if isAssumeRole(r) {
		return "AssumeRole"
	}
	if key == "" {
		return bucketOperation(r.Method, query.Has)
	}
	switch {
	case r.Method == http.MethodPut && query.Has("uploadId") && copies:
		return "UploadPartCopy"
	case r.Method == http.MethodPut && query.Has("uploadId"):
		return "UploadPart"
	case r.Method == http.MethodPut && copies:
		return "CopyObject"
	case r.Method == http.MethodPost && query.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && query.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == http.MethodGet && query.Has("uploadId"):
		return "ListParts"
	}
	return methodNames[r.Method] + "Object"
}

// isAssumeRole says whether a request is for the Security Token Service, whose other requests the proxy does not know.
func isAssumeRole(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/" }

func bucketOperation(method string, has func(string) bool) string {
	switch {
	case method == http.MethodGet && has("uploads"):
		return "ListMultipartUploads"
	case method == http.MethodGet && has("list-type"):
		return "ListObjectsV2"
	case method == http.MethodGet && has("location"):
		return "GetBucketLocation"
	case method == http.MethodGet:
		return "ListObjects"
	case method == http.MethodPost && has("delete"):
		return "DeleteObjects"
	case method == http.MethodPut:
		return "CreateBucket"
	}
	return methodNames[method] + "Bucket"
}

var methodNames = map[string]string{
	http.MethodGet: "Get", http.MethodHead: "Head", http.MethodPut: "Put", http.MethodPost: "Post", http.MethodDelete: "Delete",
}
