/** Whether the ImageStream `catalogs` should exist. */

/**
 * Only where the cluster has the API and no catalog image is set by annotation. The existing system looks at the annotation of
 * one catalog; since all or none must be set, any of them says the same.
 */
export function catalogStreamWanted(hasImageStreams: boolean, imagesAreSet: boolean): boolean {
  return hasImageStreams && !imagesAreSet;
}
