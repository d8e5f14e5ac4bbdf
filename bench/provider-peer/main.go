// A stand-in for cri-o/crio-credential-provider, for the benchmark of ours and nothing else. It is not that program: it was
// written from a description of what that program does and from recordings of its answers, logs and requests, with the
// libraries that it is built from (sysregistriesv2, client-go, golang-jwt, godotenv, go-systemd). What the original does
// that costs time, this does: the whole registries configuration is read and validated, the API server's certificate is not
// verified, every comparison of an entry with a mirror is a line of log on stderr and in the journal.
//
// The paths of a node are flags here (the original's are fixed when it is linked), with the names that ours has.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/golang-jwt/jwt/v5"
	"github.com/joho/godotenv"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	provider "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

type node struct {
	registriesConf, registriesConfDir, authDir, globalAuthFile, apiServerEnv string
}

type entry struct {
	Auth string `json:"auth,omitempty"`
}

type authFile struct {
	Auths map[string]entry `json:"auths"`
}

type journalWriter struct{}

func (journalWriter) Write(line []byte) (int, error) {
	_ = journal.Send(string(bytes.TrimSuffix(line, []byte{'\n'})), journal.PriInfo, nil)
	return len(line), nil
}

func main() {
	log.SetFlags(log.LstdFlags | log.Lshortfile)
	log.SetOutput(io.MultiWriter(os.Stderr, journalWriter{}))
	n := node{}
	flag.StringVar(&n.registriesConf, "registries-conf", "/etc/containers/registries.conf", "")
	flag.StringVar(&n.registriesConfDir, "registries-conf-dir", "", "")
	flag.StringVar(&n.authDir, "auth-dir", "/etc/crio/auth", "")
	flag.StringVar(&n.globalAuthFile, "global-auth-file", "/var/lib/kubelet/config.json", "")
	flag.StringVar(&n.apiServerEnv, "apiserver-env", "/etc/kubernetes/apiserver-url.env", "")
	flag.String("ca-file", "", "accepted, not read: no certificate is verified")
	version := flag.Bool("version", false, "")
	flag.Parse()
	if *version {
		fmt.Println("stand-in")
		return
	}
	if err := n.run(); err != nil {
		log.Fatalf("Failed to run credential provider: %v", err)
	}
}

func (n node) run() error {
	log.Print("Running credential provider")
	if _, err := os.Stat(n.registriesConf); err != nil {
		if !os.IsNotExist(err) {
			return fmt.Errorf("unable to stat registries conf path: %w", err)
		}
		log.Printf("Registries conf path %q does not exist, stopping", n.registriesConf)
		return respond()
	}
	log.Print("Reading from stdin")
	request := &provider.CredentialProviderRequest{}
	if err := json.NewDecoder(os.Stdin).Decode(request); err != nil {
		return fmt.Errorf("unable to parse credential provider request from stdin: %w", err)
	}
	log.Printf("Parsed credential provider request for image %q", request.Image)
	log.Print("Parsing namespace from request")
	namespace, err := namespaceOf(request.ServiceAccountToken)
	if err != nil {
		return fmt.Errorf("unable to extract namespace: %w", err)
	}
	log.Printf("Matching mirrors for registry config: %s", n.registriesConf)
	mirrors, err := n.mirrorsOf(request.Image)
	if err != nil {
		return fmt.Errorf("unable to match mirrors: %w", err)
	}
	if len(mirrors) == 0 {
		log.Print("No mirrors found, will not write any auth file")
		return respond()
	}
	log.Printf("Got mirror(s) for %q: %q", request.Image, strings.Join(mirrors, ", "))
	log.Printf("Getting secrets from namespace: %s", namespace)
	secrets, err := n.secretsOf(request.ServiceAccountToken, namespace)
	if err != nil {
		return fmt.Errorf("unable to get secrets: %w", err)
	}
	log.Printf("Got %d secret(s)", len(secrets.Items))
	path, err := n.write(secrets, namespace, request.Image, mirrors)
	if err != nil {
		return fmt.Errorf("unable to create auth file: %w", err)
	}
	log.Printf("Auth file path: %s", path)
	return respond()
}

func respond() error {
	return json.NewEncoder(os.Stdout).Encode(provider.CredentialProviderResponse{
		TypeMeta:     metav1.TypeMeta{APIVersion: "credentialprovider.kubelet.k8s.io/v1", Kind: "CredentialProviderResponse"},
		CacheKeyType: provider.RegistryPluginCacheKeyType,
	})
}

// The token is read, not verified, as the original does.
func namespaceOf(token string) (string, error) {
	if token == "" {
		return "", errors.New("request service account token is empty")
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return "", fmt.Errorf("unable to parse JWT token: %w", err)
	}
	claim, ok := claims["kubernetes.io"]
	if !ok {
		return "", errors.New("no kubernetes.io claim name in JWT claims found")
	}
	fields, ok := claim.(map[string]any)
	if !ok {
		return "", errors.New("kubernetes.io claim does not contain a map")
	}
	value, ok := fields["namespace"]
	if !ok {
		return "", errors.New("no namespace found in kubernetes claim")
	}
	namespace, ok := value.(string)
	if !ok {
		return "", errors.New("namespace is not a string object")
	}
	return namespace, nil
}

func (n node) mirrorsOf(image string) ([]string, error) {
	if image == "" {
		return nil, errors.New("request is nil or image is empty")
	}
	system := &types.SystemContext{
		SystemRegistriesConfPath: n.registriesConf, SystemRegistriesConfDirPath: n.registriesConfDir,
	}
	registry, err := sysregistriesv2.FindRegistry(system, image)
	if err != nil {
		return nil, fmt.Errorf("loading registries configuration: %w", err)
	}
	if registry == nil {
		return nil, nil
	}
	mirrors := make([]string, len(registry.Mirrors))
	for i, mirror := range registry.Mirrors {
		mirrors[i] = mirror.Location
	}
	return mirrors, nil
}

func (n node) secretsOf(token, namespace string) (*corev1.SecretList, error) {
	config := &rest.Config{
		Host: n.apiServer(), BearerToken: token, UserAgent: "crio-credential-provider",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("unable to connect to Kubernetes API: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	secrets, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=" + string(corev1.SecretTypeDockerConfigJson),
	})
	if err != nil {
		return nil, fmt.Errorf("unable to retrieve secrets: %w", err)
	}
	return secrets, nil
}

func (n node) apiServer() string {
	const usual = "localhost:6443"
	variables, err := godotenv.Read(n.apiServerEnv)
	if err != nil {
		log.Printf("Unable to find env file %q, using default API server host: %s", n.apiServerEnv, usual)
		return usual
	}
	host, port := variables["KUBERNETES_SERVICE_HOST"], variables["KUBERNETES_SERVICE_PORT"]
	if host == "" || port == "" {
		log.Printf("Env file %q missing KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT, using default API server host: %s", n.apiServerEnv, usual)
		return usual
	}
	log.Printf("Using API server host: %s:%s", host, port)
	return host + ":" + port
}

func (n node) write(secrets *corev1.SecretList, namespace, image string, mirrors []string) (string, error) {
	if namespace == "" {
		return "", errors.New("namespace is empty")
	}
	contents, err := readAuthFile(n.globalAuthFile)
	if err != nil {
		return "", fmt.Errorf("unable to read global auth file: %w", err)
	}
	// The original makes room for every secret and every mirror at once.
	matched := make(map[string]entry, len(secrets.Items)*len(mirrors))
	for _, secret := range secrets.Items {
		log.Printf("Parsing secret: %s", secret.Name)
		auths, err := authsOf(&secret)
		if err != nil {
			log.Printf("Skipping secret %q: %v", secret.Name, err)
			continue
		}
		match(matched, auths, secret.Name, image, mirrors)
	}
	if len(matched) == 0 {
		log.Print("No docker auth found for any available secret")
	}
	for key, value := range matched {
		contents.Auths[key] = value
	}
	return n.save(contents, namespace, image)
}

func readAuthFile(path string) (*authFile, error) {
	contents := &authFile{Auths: map[string]entry{}}
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return contents, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, contents); err != nil {
		return nil, fmt.Errorf("unmarshaling JSON at %q: %w", path, err)
	}
	return contents, nil
}

func authsOf(secret *corev1.Secret) (map[string]entry, error) {
	if secret.Type != corev1.SecretTypeDockerConfigJson {
		return nil, errors.New("secret is not a docker config JSON secret")
	}
	data, ok := secret.Data[corev1.DockerConfigJsonKey]
	if !ok {
		return nil, fmt.Errorf("skipping secret %q because it does not contain data key %q", secret.Name, corev1.DockerConfigJsonKey)
	}
	contents := authFile{}
	if err := json.Unmarshal(data, &contents); err != nil {
		return nil, fmt.Errorf("skipping secret %q because its docker config JSON is not parsable: %w", secret.Name, err)
	}
	return contents.Auths, nil
}

func match(matched map[string]entry, auths map[string]entry, secret, image string, mirrors []string) {
	for key, value := range auths {
		log.Printf("Found docker config JSON auth in secret %q for %q", secret, key)
		user, password, err := decode(value.Auth)
		if err != nil {
			log.Printf("Skipping secret %q because the docker config JSON auth is not parsable: %v", secret, err)
			continue
		}
		own := entry{Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
		key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		if isMirrored(key, mirrors) {
			matched[key] = own
		}
		if strings.HasPrefix(image, key) {
			log.Printf("Using auth for registry %q matching image %q", key, image)
			matched[key] = own
		}
	}
}

func isMirrored(key string, mirrors []string) bool {
	for _, mirror := range mirrors {
		log.Printf("Checking if mirror %q matches registry %q", mirror, key)
		if strings.HasPrefix(mirror, key) {
			log.Printf("Using mirror auth %q for registry from secret %q", mirror, key)
			return true
		}
	}
	return false
}

func decode(auth string) (user, password string, err error) {
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", fmt.Errorf("unable to decode docker auth: %w", err)
	}
	user, password, ok := strings.Cut(string(decoded), ":")
	if !ok {
		return "", "", nil
	}
	return user, strings.Trim(password, "\x00"), nil
}

func (n node) save(contents *authFile, namespace, image string) (string, error) {
	if len(contents.Auths) == 0 {
		return "", errors.New("unable to write namespace auth file: no auths found in file contents")
	}
	if err := os.MkdirAll(n.authDir, 0o700); err != nil {
		return "", fmt.Errorf("ensure auth dir %q: %w", n.authDir, err)
	}
	sum := sha256.Sum256([]byte(image))
	path := filepath.Join(n.authDir, namespace+"-"+hex.EncodeToString(sum[:])+".json")
	buffer := &bytes.Buffer{}
	encoder := json.NewEncoder(buffer)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(contents); err != nil {
		return "", err
	}
	if err := replace(path, buffer.Bytes()); err != nil {
		return "", err
	}
	log.Printf("Wrote auth file to %s with %d number of entries", path, len(contents.Auths))
	return path, nil
}

// os.CreateTemp makes files that only their owner reads.
func replace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".auth-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
