import * as z from 'zod'
import { RegistryError } from './error.ts'

/** Schemas of registry documents: strict for known members; further members are allowed and kept. */

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)
const mediaType = z.string().min(1).max(255)
const annotations = z.record(z.string(), z.string())

const DescriptorDocument = z.looseObject({
  mediaType,
  digest,
  size: z.int().min(0),
  annotations: annotations.exactOptional(),
  artifactType: z.string().max(255).exactOptional(),
  platform: z
    .looseObject({ os: z.string(), architecture: z.string(), variant: z.string().exactOptional() })
    .exactOptional(),
})

const common = {
  schemaVersion: z.literal(2),
  mediaType: mediaType.exactOptional(),
  annotations: annotations.exactOptional(),
}

// Rejects a document that is both a manifest and an index, because other clients may interpret it differently.
export const ManifestDocument = z.looseObject({
  ...common,
  artifactType: z.string().max(255).exactOptional(),
  config: DescriptorDocument,
  layers: z.array(DescriptorDocument),
  subject: DescriptorDocument.exactOptional(),
  manifests: z.never().exactOptional(),
})

export const IndexDocument = z.looseObject({
  ...common,
  manifests: z.array(DescriptorDocument),
  layers: z.never().exactOptional(),
  config: z.never().exactOptional(),
})

const maxDepth = 32
const advice = 'Check that this is an OCI registry.'

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1)))

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Parses JSON from a registry with a schema. Throws `RegistryError` without a cause, because parser messages quote the
 * input.
 */
export function parseDocument<Schema extends z.ZodType>(
  schema: Schema,
  { body, isCutShort }: { body: Buffer; isCutShort: boolean },
  description: string,
): z.output<Schema> {
  if (isCutShort) throw new RegistryError('too_large', `${description} exceeds the size limit. ${advice}`)
  const value = parseJson(body.toString())
  const parsed = isDeeper(value, maxDepth) ? undefined : schema.safeParse(value)
  if (parsed?.success) return parsed.data
  throw new RegistryError('invalid', `${description} does not match the specification. ${advice}`)
}
