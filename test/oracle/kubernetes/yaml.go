package main

import "sigs.k8s.io/yaml"

// What kubectl, the kubelet and the API server make of a YAML document.
func asJSON(text string) answer {
	loose, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return answer{"error": err.Error()}
	}
	_, strictErr := yaml.YAMLToJSONStrict([]byte(text))
	strict := ""
	if strictErr != nil {
		strict = strictErr.Error()
	}
	return answer{"json": string(loose), "strictError": strict}
}
