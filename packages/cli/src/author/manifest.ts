import { readFile } from 'node:fs/promises'
import type { ModuleManifest } from '@platform/contract/manifest'
import { checkManifest } from '@platform/core/modules/check-manifest'
import { manifestOf } from './manifest-from-code.ts'
import type { ModuleDescription } from '@platform/modules/describe'
import { formatReference, parseReference } from '@platform/oci/reference'
import { CliError } from '../exit.ts'
import { describeProject } from './bundle.ts'
import { memberOf } from './json.ts'
import { type Project, readManifest, writeManifest } from './project.ts'

/** Returns the manifest of a project, updated from the code. Does not write the manifest file. */
export async function currentManifest(project: Project): Promise<ModuleManifest> {
  const description = await describeProject(project)
  return parseAndCheckManifest(project, description, withVersion(await readManifest(project), description.version))
}

/**
 * Updates the manifest file from the code and sets its image tag to the version. Throws `CliError` with one line per
 * invalid field.
 */
export async function renewManifest(project: Project): Promise<{ manifest: ModuleManifest; isChanged: boolean }> {
  const manifest = await currentManifest(project)
  return { manifest, isChanged: await writeManifest(project, manifest) }
}

/** Returns the bytes of the manifest file, which are part of the image. */
export const manifestText = ({ manifestFile }: Project): Promise<Buffer> => readFile(manifestFile)

type AuthoredFields = Parameters<typeof manifestOf>[1]

function parseAndCheckManifest(
  project: Project,
  description: ModuleDescription,
  fields: Readonly<Record<string, unknown>>,
): ModuleManifest {
  const manifest = parseManifest(project, description, fields)
  const problems = checkManifest(manifest)
  if (problems.length > 0) throw invalidManifestError(project, problems)
  return manifest
}

function parseManifest(project: Project, description: ModuleDescription, fields: Readonly<Record<string, unknown>>) {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema validates it
    return manifestOf(description, { metadata: {}, spec: {}, ...fields } as unknown as AuthoredFields)
  } catch (error) {
    throw hasIssues(error) ? invalidManifestError(project, error.issues, error) : error
  }
}

interface Issue {
  path: readonly PropertyKey[]
  message: string
}

const hasIssues = (error: unknown): error is Error & { issues: readonly Issue[] } =>
  error instanceof Error && 'issues' in error && Array.isArray(error.issues)

function invalidManifestError({ manifestFile }: Project, issues: readonly Issue[], cause?: unknown): CliError {
  const problemLines = issues.map(({ path, message }) => `  ${path.join('.') || 'the file'}: ${message}`)
  const advice = 'The code defines slots, health checks, jobs, id and version; edit the other fields in the file.'
  return new CliError('usage', [`${manifestFile} is invalid:`, ...problemLines, advice].join('\n'), cause)
}

/** Returns the image tag of a version. Tags do not allow the `+` of SemVer. */
export const tagOf = (version: string): string => version.replaceAll('+', '_')

function withVersion(fields: Record<string, unknown>, version: string): Record<string, unknown> {
  const image = memberOf(fields, 'spec', 'image')
  const reference = typeof image === 'string' ? parseReference(image) : undefined
  if (reference === undefined) return fields
  const { registry, repository } = reference
  const spec = { ...Object(fields['spec']), image: formatReference({ registry, repository, tag: tagOf(version) }) }
  return { ...fields, spec }
}
