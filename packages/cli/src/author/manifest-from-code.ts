import { ModuleManifest } from '@platform/contract/manifest'
import type { ModuleDescription } from '@platform/modules/describe'

type Metadata = ModuleManifest['metadata']
type Spec = ModuleManifest['spec']
type Optional<Type, Name extends keyof Type> = Omit<Type, Name> & Partial<Pick<Type, Name>>

/** The fields of a manifest that the code does not define. */
export interface AuthoredFields {
  $schema?: string
  metadata: Omit<Metadata, 'id' | 'version'>
  spec: Optional<Omit<Spec, 'navSlots' | 'healthChecks' | 'backgroundJobs'>, 'permissionsRequired' | 'events'>
}

/**
 * Combines the description from the code with the authored fields, in a fixed order. Throws `ZodError` if the manifest
 * is invalid.
 */
export const manifestOf = (
  description: ModuleDescription,
  { $schema, metadata, spec }: AuthoredFields,
): ModuleManifest => {
  const { id, version, slots, healthChecks, jobs } = description
  return ModuleManifest.parse({
    ...($schema !== undefined && { $schema }),
    metadata: { ...metadata, id, version },
    spec: {
      ...spec,
      navSlots: slots,
      healthChecks: healthChecks.map((check) => ({
        name: check.name,
        path: `/health/${check.name}`,
        tags: check.tags,
      })),
      backgroundJobs: jobs,
    },
  })
}
