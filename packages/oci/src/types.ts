/** Types of the OCI distribution and image specifications, version 1.1. */

export const mediaTypes = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  empty: 'application/vnd.oci.empty.v1+json',
} as const

/**
 * Identifies a manifest or a blob by its content. `digest` is `sha256:` and 64 hexadecimal digits; `size` is in bytes.
 */
export interface Descriptor {
  mediaType: string
  digest: string
  size: number
  annotations?: Record<string, string>
  artifactType?: string
  platform?: { os: string; architecture: string; variant?: string }
}

export interface Manifest {
  schemaVersion: 2
  mediaType: string
  artifactType?: string
  config: Descriptor
  layers: Descriptor[]
  subject?: Descriptor
  annotations?: Record<string, string>
}

/** A list of manifests: one for each platform, or the referrers of an image. */
export interface Index {
  schemaVersion: 2
  mediaType: string
  manifests: Descriptor[]
  annotations?: Record<string, string>
}

export interface ImageConfig {
  architecture: string
  os: string
  created?: string
  config: {
    Env?: string[]
    Entrypoint?: string[]
    Cmd?: string[]
    WorkingDir?: string
    User?: string
    Labels?: Record<string, string>
  }
  rootfs: { type: 'layers'; diff_ids: string[] }
}

/** A single-platform image. The manifest and the configuration have been read and validated, the layers have not. */
export interface Image {
  repository: string
  /** Digest of the manifest of the selected platform. */
  digest: string
  /** Digest of the reference: of an index, or of the same manifest. Signatures may cover either digest. */
  topDigest: string
  manifest: Manifest
  config: ImageConfig
  labels: Readonly<Record<string, string>>
}
