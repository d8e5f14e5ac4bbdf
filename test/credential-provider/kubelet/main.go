// The kubelet's side of credential providers, with the kubelet's own code: reads the configuration, requests tokens as a
// node, runs the plugins, and answers one pull per line of JSON. Built against the modules of test/control-plane;
// kubelet.test.ts asks. Arguments: configuration file, folder of the plugins, kubeconfig of the node.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
)

type pull struct{ Image, Namespace, Pod, UID, ServiceAccount string }

// A credential as the kubelet hands it to the runtime, and whom it remembers it for.
type credential struct {
	Username, Password string
	ServiceAccount     string
}

type answer struct{ Credentials []credential }

func owner(source *credentialprovider.CredentialSource) string {
	if source == nil || source.ServiceAccount == nil {
		return ""
	}
	return source.ServiceAccount.Namespace + "/" + source.ServiceAccount.Name
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(config, folder, kubeconfig string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	accounts := kubernetes.NewForConfigOrDie(rest).CoreV1()
	token := func(namespace, name string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		return accounts.ServiceAccounts(namespace).CreateToken(context.Background(), name, request, metav1.CreateOptions{})
	}
	account := func(namespace, name string) (*v1.ServiceAccount, error) {
		return accounts.ServiceAccounts(namespace).Get(context.Background(), name, metav1.GetOptions{})
	}
	if err := plugin.RegisterCredentialProviderPlugins(config, folder, token, account); err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked pull
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		keyring := plugin.NewExternalCredentialProviderDockerKeyring(asked.Namespace, asked.Pod, asked.UID, asked.ServiceAccount)
		found, _ := keyring.Lookup(asked.Image)
		given := answer{Credentials: []credential{}}
		for _, one := range found {
			given.Credentials = append(given.Credentials, credential{one.Username, one.Password, owner(one.Source)})
		}
		if err := out.Encode(given); err != nil {
			return err
		}
	}
}
