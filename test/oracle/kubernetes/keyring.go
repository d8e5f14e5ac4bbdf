package main

import (
	"encoding/hex"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/secrets"
	"k8s.io/kubernetes/pkg/util/parsers"
)

type secret struct{ Name, Type, Key, Data string }

type credential struct{ Username, Password, Email, Hash, Secret string }

func decoded(bytes []byte, err error) string {
	if err != nil {
		return ""
	}
	return hex.EncodeToString(bytes)
}

func document(body string) answer {
	var generic map[string]any
	genericErr := json.Unmarshal([]byte(body), &generic)
	written := ""
	if genericErr == nil {
		bytes, err := json.Marshal(generic)
		if err != nil {
			panic(err)
		}
		written = string(bytes)
	}
	var config credentialprovider.DockerConfigJSON
	var legacy credentialprovider.DockerConfig
	api := []string{}
	for _, err := range validation.ValidateSecret(&core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"},
		Type:       core.SecretTypeDockerConfigJSON,
		Data:       map[string][]byte{core.DockerConfigJSONKey: []byte(body)},
	}) {
		api = append(api, err.Error())
	}
	return answer{
		"written": written, "genericError": text(genericErr),
		"configError": text(json.Unmarshal([]byte(body), &config)),
		"legacyError": text(json.Unmarshal([]byte(body), &legacy)),
		"api":         api,
	}
}

func keyring(body string) credentialprovider.DockerKeyring {
	ring := &credentialprovider.BasicDockerKeyring{}
	var config credentialprovider.DockerConfigJSON
	if json.Unmarshal([]byte(body), &config) == nil {
		ring.Add(nil, config.Auths)
	}
	return ring
}

func lookup(q question) answer {
	repository, _, _, err := parsers.ParseImageName(q.Text)
	if err != nil {
		return answer{"error": err.Error()}
	}
	var others credentialprovider.UnionDockerKeyring
	for _, body := range []*string{q.Node, q.Plugin} {
		if body != nil {
			others = append(others, keyring(*body))
		}
	}
	list := []v1.Secret{}
	for _, s := range q.Secrets {
		list = append(list, v1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.Name},
			Type:       v1.SecretType(s.Type),
			Data:       map[string][]byte{s.Key: []byte(s.Data)},
		})
	}
	ring, err := secrets.MakeDockerKeyring(list, others)
	if err != nil {
		return answer{"error": err.Error()}
	}
	found, _ := ring.Lookup(repository)
	credentials := []credential{}
	for _, c := range found {
		source := ""
		if c.Source != nil && c.Source.Secret != nil {
			source = c.Source.Secret.Name
		}
		credentials = append(credentials, credential{c.Username, c.Password, c.Email, c.AuthConfigHash, source})
	}
	return answer{"credentials": credentials}
}
