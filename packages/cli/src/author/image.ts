import { rm, writeFile } from 'node:fs/promises'
import type { ModuleManifest } from '@platform/contract/manifest'
import { type BuiltImage, buildImage, nodeLayer } from '@platform/registry/build'
import { exportLayout } from '@platform/registry/layout'
import type { FileToPack } from '@platform/registry/pack'
import { Failure } from '../exit.ts'
import { fetchLayers, openBase, readBase } from './base.ts'
import { bundle } from './bundle.ts'
import { manifestText, renewManifest, tagOf } from './manifest.ts'
import type { Project } from './project.ts'

/** What an image stands on: nothing but the module, the Node.js of this machine, or another image. */
export interface Base {
  withNode?: true
  from?: string
}

/** Builds a module's image into its folder, manifest and labels included. The same files make the same image. */
export async function buildProject(
  project: Project,
  base: Base,
): Promise<{ image: BuiltImage; manifest: ModuleManifest }> {
  if (base.withNode && process.platform !== 'linux') {
    const advice = 'Build on an image that brings Node.js instead: --from <image>'
    throw new Failure('usage', `Only the Node.js of a Linux machine can be put into an image. ${advice}`)
  }
  const { manifest } = await renewManifest(project)
  const program = await bundle(project)
  const remote = base.from === undefined ? undefined : openBase(base.from, manifest)
  const image = await buildImage({
    files: await filesOf(project, program),
    config: { Entrypoint: ['node', programPath], Cmd: [], WorkingDir: '/app' },
    labels: labelsOf(manifest),
    ...(base.withNode && { layers: [await nodeLayer()] }),
    ...(remote && { base: await readBase(remote) }),
  })
  await rm(project.imageFolder, { recursive: true, force: true })
  const layers = remote ? await fetchLayers(remote, image.layers) : image.layers
  await exportLayout({ ...image, layers }, project.imageFolder, [tagOf(manifest.metadata.version), 'latest'])
  await writeFile(project.programFile, program)
  return { image, manifest }
}

const programPath = '/app/main.mjs'

/** The topmost layer of an image: the module itself. */
export const filesOf = async (project: Project, program: Uint8Array): Promise<FileToPack[]> => [
  { path: '/module.json', content: await manifestText(project) },
  { path: programPath, content: program },
]

/** The labels of section 9 of the specification. */
const labelsOf = ({ metadata: { id, version, repositoryUrl } }: ModuleManifest): Record<string, string> => ({
  'org.platform.module': 'true',
  'org.platform.module.id': id,
  'org.platform.module.version': version,
  ...(repositoryUrl !== undefined && { 'org.opencontainers.image.source': repositoryUrl }),
})
