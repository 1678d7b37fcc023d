import type { ModuleManifest } from '@platform/contract/manifest'
import { parseReference } from '@platform/oci/reference'
import { iconNames } from './icons.ts'
import { isUnder } from './routes.ts'
import { toNpmRange } from './sdk-range.ts'

export interface ManifestProblem {
  path: readonly (string | number)[]
  code: string
  message: string
}

/** A module with this id would conflict with the API path `/api/v1/modules/catalog`. */
const reservedId = 'catalog'

/** Reserved for control requests of the platform. */
const controlPath = '/_platform'

export const checkManifest = (manifest: ModuleManifest): ManifestProblem[] => [
  ...idProblems(manifest),
  ...specProblems(manifest),
  ...slotProblems(manifest),
  ...pathProblems(manifest),
  ...duplicateProblems(manifest.spec.navSlots, 'navSlots', ({ slotId, id }) => `${slotId} ${id}`),
  ...duplicateProblems(manifest.spec.healthChecks, 'healthChecks', ({ name }) => name),
  ...duplicateProblems(manifest.spec.backgroundJobs, 'backgroundJobs', ({ id }) => id),
]

const idProblems = ({ metadata }: ModuleManifest): ManifestProblem[] =>
  metadata.id === reservedId
    ? [{ path: ['metadata', 'id'], code: 'reserved', message: 'is reserved by the platform' }]
    : []

function specProblems({ spec }: ModuleManifest): ManifestProblem[] {
  const problems: ManifestProblem[] = []
  if (toNpmRange(spec.sdkVersion) === undefined) {
    const message = 'must be an npm range, or one like [0.1.0,1.0.0)'
    problems.push({ path: ['spec', 'sdkVersion'], code: 'invalid_range', message })
  }
  if (parseReference(spec.image) === undefined) {
    const message = 'must be an image reference that names its registry'
    problems.push({ path: ['spec', 'image'], code: 'invalid_reference', message })
  }
  return problems
}

const slotProblems = ({ metadata, spec }: ModuleManifest): ManifestProblem[] =>
  spec.navSlots.flatMap(({ icon, route }, index) => {
    const path = ['spec', 'navSlots', index]
    const isOwnRoute = isUnder(route, `/modules/${metadata.id}`)
    return [
      ...(iconNames.has(icon)
        ? []
        : [{ path: [...path, 'icon'], code: 'unknown_icon', message: 'is not the name of a Lucide icon' }]),
      ...(isOwnRoute
        ? []
        : [{ path: [...path, 'route'], code: 'foreign_route', message: `must be /modules/${metadata.id} or below` }]),
    ]
  })

function pathProblems({ spec }: ModuleManifest): ManifestProblem[] {
  const message = `must not be below ${controlPath}`
  const checks = spec.healthChecks.map(({ path }, index) => ({ value: path, path: ['healthChecks', index, 'path'] }))
  return [{ value: spec.healthEndpoint, path: ['healthEndpoint'] }, ...checks].flatMap(({ value, path }) =>
    isUnder(value, controlPath) ? [{ path: ['spec', ...path], code: 'reserved', message }] : [],
  )
}

function duplicateProblems<Entry>(
  entries: readonly Entry[],
  list: string,
  nameOf: (entry: Entry) => string,
): ManifestProblem[] {
  const names = entries.map(nameOf)
  return names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [{ path: ['spec', list, index], code: 'duplicate', message: 'duplicates the name of an earlier entry' }],
  )
}
