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

/** The manifest of a folder as it has to be: what the code says stands in it as the code says it. Nothing is written. */
export async function currentManifest(project: Project): Promise<ModuleManifest> {
  const description = await describeProject(project)
  return checked(project, description, withVersion(await readManifest(project), description.version))
}

/**
 * Makes the manifest of a folder true, and its image that of the version's tag. What the code cannot say stays as it is.
 * Answers the manifest, and whether it has changed. Throws `Failure` with a line for each field that is wrong.
 */
export async function renewManifest(project: Project): Promise<{ manifest: ModuleManifest; isChanged: boolean }> {
  const manifest = await currentManifest(project)
  return { manifest, isChanged: await writeManifest(project, manifest) }
}

/** The manifest as it stands in the file: with its layout, which is part of the image. */
export const manifestText = ({ manifestFile }: Project): Promise<Buffer> => readFile(manifestFile)

type Given = Parameters<typeof manifestOf>[1]

function checked(
  project: Project,
  description: ModuleDescription,
  given: Readonly<Record<string, unknown>>,
): ModuleManifest {
  const manifest = parsed(project, description, given)
  const problems = checkManifest(manifest)
  if (problems.length > 0) throw invalid(project, problems)
  return manifest
}

function parsed(project: Project, description: ModuleDescription, given: Readonly<Record<string, unknown>>) {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema judges it
    return manifestOf(description, { metadata: {}, spec: {}, ...given } as unknown as Given)
  } catch (error) {
    throw hasIssues(error) ? invalid(project, error.issues, error) : error
  }
}

interface Issue {
  path: readonly PropertyKey[]
  message: string
}

const hasIssues = (error: unknown): error is Error & { issues: readonly Issue[] } =>
  error instanceof Error && 'issues' in error && Array.isArray(error.issues)

function invalid({ manifestFile }: Project, issues: readonly Issue[], cause?: unknown): CliError {
  const lines = issues.map(({ path, message }) => `  ${path.join('.') || 'the whole'}: ${message}`)
  const advice = 'Slots, health checks, jobs, id and version come from the code; the rest stands in the file.'
  return new CliError('usage', [`${manifestFile} is not valid:`, ...lines, advice].join('\n'), cause)
}

/** A version as a tag: what SemVer allows, and tags do not, is written otherwise. */
export const tagOf = (version: string): string => version.replaceAll('+', '_')

/** The same repository, under the tag of the version. */
function withVersion(given: Record<string, unknown>, version: string): Record<string, unknown> {
  const image = memberOf(given, 'spec', 'image')
  const reference = typeof image === 'string' ? parseReference(image) : undefined
  if (reference === undefined) return given
  const { registry, repository } = reference
  const spec = { ...Object(given['spec']), image: formatReference({ registry, repository, tag: tagOf(version) }) }
  return { ...given, spec }
}
