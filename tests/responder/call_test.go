package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// echo answers with the status that the path names and what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	var status int
	fmt.Sscanf(r.URL.Path, "/%d", &status)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/200")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s %q\n", r.Method, body)
}

func checkCall(t *testing.T, arguments []string, code int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	if got := run(t.Context(), append([]string{"call"}, arguments...), &out, &errors); got != code {
		t.Errorf("exit code is %d, not %d", got, code)
	}
	if out.String() != stdout {
		t.Errorf("stdout is %q, not %q", out.String(), stdout)
	}
	if !strings.Contains(errors.String(), stderr) || (stderr == "" && errors.Len() > 0) {
		t.Errorf("stderr is %q, not %q", errors.String(), stderr)
	}
}

func TestExitCodeTellsWhetherTheAnswerWas2xx(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	checkCall(t, []string{server.URL + "/200"}, 0, "200 GET \"\"\n", "")
	checkCall(t, []string{server.URL + "/201"}, 0, "201 GET \"\"\n", "")
	checkCall(t, []string{server.URL + "/307"}, 1, "307 GET \"\"\n", "")
	checkCall(t, []string{server.URL + "/404"}, 1, "404 GET \"\"\n", "")
	checkCall(t, []string{server.URL + "/503"}, 1, "503 GET \"\"\n", "")
}

func TestFlagsAreTakenOnBothSidesOfTheURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	checkCall(t, []string{server.URL + "/200", "--data", "{}"}, 0, "200 POST \"{}\"\n", "")
	checkCall(t, []string{"--method", "PUT", server.URL + "/200", "--data", "{}"}, 0, "200 PUT \"{}\"\n", "")
	checkCall(t, []string{"--method=DELETE", server.URL + "/200"}, 0, "200 DELETE \"\"\n", "")
}

func TestTheLastOfRepeatedRequestsDecides(t *testing.T) {
	addresses := map[string]bool{}
	statuses := []int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.WriteHeader(statuses[0])
		statuses = statuses[1:]
	}))
	defer server.Close()
	statuses = []int{500, 200}
	checkCall(t, []string{server.URL, "--repeat", "2", "--interval", "1ms"}, 0, "500 \n200 \n", "")
	statuses = []int{200, 500}
	checkCall(t, []string{server.URL, "--repeat", "2", "--interval", "1ms"}, 1, "200 \n500 \n", "")
	if len(addresses) != 4 {
		t.Errorf("4 requests came over %d connections", len(addresses))
	}
}

func TestNoAnswerIsAFailureOnStderr(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hanging.Close()
	checkCall(t, []string{hanging.URL, "--timeout", "50ms"}, 1, "", "Client.Timeout exceeded")

	closed := httptest.NewServer(http.HandlerFunc(echo))
	closed.Close()
	checkCall(t, []string{closed.URL}, 1, "", "connection refused")
}

func TestCallTrustsOnlyTheGivenAuthorityAndShowsItsCertificate(t *testing.T) {
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	writeCertificate(t, cert, key, 7)

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto)
		for _, certificate := range r.TLS.PeerCertificates {
			fmt.Fprintf(w, " client %s", certificate.SerialNumber)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = discard
	server.TLS = requestClientCertificate
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(folder, "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}

	checkCall(t, []string{server.URL, "--ca", ca}, 0, "200 HTTP/2.0\n", "")
	checkCall(t, []string{server.URL, "--ca", ca, "--cert", cert, "--key", key}, 0, "200 HTTP/2.0 client 7\n", "")
	checkCall(t, []string{server.URL, "--ca", cert}, 1, "", "certificate signed by unknown authority")
	checkCall(t, []string{server.URL, "--ca", key}, 1, "", "holds no certificate")
	checkCall(t, []string{server.URL, "--ca", folder + "/none"}, 1, "", "could not read the authorities")
}
