package main

import (
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// The registries of all files, the search list, and for each image the registry that decides and where it is pulled from.
func conf(q question, system *types.SystemContext) answer {
	sysregistriesv2.InvalidateCache()
	registries, err := sysregistriesv2.GetRegistries(system)
	if err != nil {
		return answer{"error": err.Error()}
	}
	search, err := sysregistriesv2.UnqualifiedSearchRegistries(system)
	must(err)
	listed := []answer{}
	for _, r := range registries {
		mirrors := []answer{}
		for _, m := range r.Mirrors {
			mirrors = append(mirrors, answer{"location": m.Location, "insecure": m.Insecure, "pullFrom": pullFrom(r, m)})
		}
		listed = append(listed, answer{
			"prefix": r.Prefix, "location": r.Location, "blocked": r.Blocked, "insecure": r.Insecure, "mirrors": mirrors,
		})
	}
	images := []answer{}
	for _, asked := range q.Asked {
		images = append(images, sources(asked, system))
	}
	return answer{"error": "", "registries": listed, "search": search, "images": images}
}

func pullFrom(r sysregistriesv2.Registry, m sysregistriesv2.Endpoint) string {
	switch {
	case r.MirrorByDigestOnly:
		return sysregistriesv2.MirrorByDigestOnly
	case m.PullFromMirror == "":
		return sysregistriesv2.MirrorAll
	}
	return m.PullFromMirror
}

func sources(asked string, system *types.SystemContext) answer {
	named, err := reference.ParseNormalizedNamed(asked)
	if err != nil {
		return answer{"error": err.Error()}
	}
	registry, err := sysregistriesv2.FindRegistry(system, named.Name())
	must(err)
	if registry == nil {
		return answer{"error": "", "prefix": "", "sources": []string{}}
	}
	found, err := registry.PullSourcesFromReference(reference.TagNameOnly(named))
	if err != nil {
		return answer{"error": err.Error(), "prefix": registry.Prefix}
	}
	references := []string{}
	for _, source := range found {
		references = append(references, source.Reference.String())
	}
	return answer{"error": "", "prefix": registry.Prefix, "sources": references}
}

func image(asked string) answer {
	named, err := reference.ParseNormalizedNamed(asked)
	if err != nil {
		return answer{"error": err.Error()}
	}
	result := answer{
		"error": "", "repository": named.Name(), "domain": reference.Domain(named), "path": reference.Path(named),
		"tag": "", "digest": "", "whole": reference.TagNameOnly(named).String(),
	}
	if tagged, ok := named.(reference.Tagged); ok {
		result["tag"] = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		result["digest"] = digested.Digest().String()
	}
	return result
}
