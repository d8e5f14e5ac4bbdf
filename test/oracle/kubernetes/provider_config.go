package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletconfigv1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1"
	kubeletconfigv1alpha1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1alpha1"
	kubeletconfigv1beta1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
)

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubeletconfig.AddToScheme, kubeletconfigv1alpha1.AddToScheme,
		kubeletconfigv1beta1.AddToScheme, kubeletconfigv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// How the kubelet starts with these files: as one file when there is one called "config", else as a folder. The folder of
// plugins is empty, so that a good configuration ends at the first program that is not there, and nothing is registered.
func providerConfig(files map[string]string) answer {
	folder, err := os.MkdirTemp("", "oracle-config-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	programs, err := os.MkdirTemp("", "oracle-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	path := folder
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			panic(err)
		}
		if name == "config" {
			path = filepath.Join(folder, name)
		}
	}
	said := plugin.RegisterCredentialProviderPlugins(path, programs, nil, nil).Error()
	if strings.HasPrefix(said, "plugin binary executable ") || strings.HasPrefix(said, "error inspecting binary executable ") {
		return answer{"error": "", "decoded": decodedConfig(files["config"])}
	}
	said = strings.ReplaceAll(said, path, "<path>")
	return answer{"error": strings.TrimPrefix(said, "failed to validate credential provider config: ")}
}

func decodedConfig(content string) any {
	object, _, err := codecs.UniversalDecoder().Decode([]byte(content), nil, nil)
	if err != nil {
		return nil
	}
	config, ok := object.(*kubeletconfig.CredentialProviderConfig)
	if !ok {
		return nil
	}
	out, err := runtime.Encode(codecs.LegacyCodec(kubeletconfigv1.SchemeGroupVersion), config)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(out)
}
