// Call makes requests from inside a pod and prints the answers.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// calls is what the arguments of one call command ask for.
type calls struct {
	url      string
	ca       string
	cert     string
	key      string
	method   string
	data     string
	timeout  time.Duration
	repeat   int
	interval time.Duration
}

func call(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	calls, err := parseCalls(args)
	if err != nil {
		return misused(stderr, err.Error())
	}
	client, err := newClient(calls)
	if err != nil {
		return failed(stderr, err)
	}

	code := exitFailure
	for i := range calls.repeat {
		if i > 0 {
			select {
			case <-ctx.Done():
				return code
			case <-time.After(calls.interval):
			}
		}
		code = callOnce(ctx, client, calls, stdout, stderr)
	}
	return code
}

// callOnce returns the code to exit with if this is the last request.
func callOnce(ctx context.Context, client *http.Client, calls calls, stdout, stderr io.Writer) int {
	request, err := http.NewRequestWithContext(ctx, calls.method, calls.url, strings.NewReader(calls.data))
	if err != nil {
		return failed(stderr, err)
	}
	if calls.data != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return failed(stderr, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return failed(stderr, fmt.Errorf("could not read the body of a %d answer: %w", response.StatusCode, err))
	}

	fmt.Fprintf(stdout, "%d %s\n", response.StatusCode, strings.TrimSuffix(string(body), "\n"))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return exitFailure
	}
	return exitOK
}

func parseCalls(args []string) (calls, error) {
	var calls calls
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	// The caller prints the error with the usage of the whole program.
	flags.SetOutput(io.Discard)
	flags.StringVar(&calls.ca, "ca", "", "")
	flags.StringVar(&calls.cert, "cert", "", "")
	flags.StringVar(&calls.key, "key", "", "")
	flags.StringVar(&calls.method, "method", "", "")
	flags.StringVar(&calls.data, "data", "", "")
	flags.DurationVar(&calls.timeout, "timeout", 5*time.Second, "")
	flags.IntVar(&calls.repeat, "repeat", 1, "")
	flags.DurationVar(&calls.interval, "interval", time.Second, "")

	// The flag package stops at the first argument that is no flag, so it is started again behind each one.
	var urls []string
	for rest := args; ; {
		if err := flags.Parse(rest); err != nil {
			return calls, err
		}
		if flags.NArg() == 0 {
			break
		}
		urls = append(urls, flags.Arg(0))
		rest = flags.Args()[1:]
	}

	if len(urls) != 1 {
		return calls, fmt.Errorf("call needs one URL, not %d", len(urls))
	}
	calls.url = urls[0]
	if target, err := url.Parse(calls.url); err != nil {
		return calls, err
	} else if (target.Scheme != "http" && target.Scheme != "https") || target.Host == "" {
		return calls, fmt.Errorf("%q is not an http or https URL", calls.url)
	}
	if (calls.cert == "") != (calls.key == "") {
		return calls, errors.New("--cert and --key need each other")
	}
	if calls.timeout <= 0 || calls.repeat < 1 || calls.interval < 0 {
		return calls, errors.New("--timeout and --repeat must be positive, --interval must not be negative")
	}
	if calls.method == "" {
		calls.method = http.MethodGet
		if calls.data != "" {
			calls.method = http.MethodPost
		}
	}
	return calls, nil
}

func newClient(calls calls) (*http.Client, error) {
	config := &tls.Config{}
	if calls.ca != "" {
		authorities, err := os.ReadFile(calls.ca)
		if err != nil {
			return nil, fmt.Errorf("could not read the authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s holds no certificate", calls.ca)
		}
	}
	if calls.cert != "" {
		pair, err := tls.LoadX509KeyPair(calls.cert, calls.key)
		if err != nil {
			return nil, fmt.Errorf("could not load the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Timeout: calls.timeout,
		// A Service chooses an endpoint for each connection, and a server shows its certificate on each handshake.
		// Repeated requests are there to see both change.
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true},
		// What is printed is the answer of the address that was asked, not of another one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
