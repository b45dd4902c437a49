package main

import (
	"context"
	"errors"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// How long one member on an empty folder may take to be ready.
const etcdStartTimeout = time.Minute

// newEtcdCommand runs one embedded etcd member. Its data lives no longer than a test, so it never waits for the disk.
func newEtcdCommand() *cobra.Command {
	var dataDir, client, peer string
	command := &cobra.Command{
		Use:           "etcd",
		Short:         "One etcd member for tests: no TLS, no fsync",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			return runEtcd(dataDir, client, peer)
		},
	}
	command.Flags().StringVar(&dataDir, "data-dir", "", "folder for the data")
	command.Flags().StringVar(&client, "client-url", "", "address that the API server talks to")
	command.Flags().StringVar(&peer, "peer-url", "", "address for other members, of which there are none")
	for _, flag := range []string{"data-dir", "client-url", "peer-url"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err) // The flag was declared three lines above.
		}
	}
	return command
}

func runEtcd(dataDir, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Name, config.Dir, config.LogLevel = "test", dataDir, "warn"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	// Room for tests that store a hundred thousand objects.
	config.QuotaBackendBytes = 8 << 30

	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(etcdStartTimeout):
		return errors.New("etcd is not ready after " + etcdStartTimeout.String())
	}
	select {
	case err := <-etcd.Err():
		return err
	case <-stop.Done():
		return nil
	}
}
