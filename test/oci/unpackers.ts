import type { RegistryClient } from '@platform/oci/client'
import { readImage } from '@platform/oci/image'
import { unpackImage } from '@platform/oci/unpack'
import { outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'

/** A copy by skopeo, between registries of this machine and folders. */
export const copy = (from: string, to: string, ...options: string[]): Promise<string> =>
  outputOf('skopeo', 'copy', '--quiet', '--src-tls-verify=false', '--dest-tls-verify=false', ...options, from, to)

/** What umoci makes of an image at an address of skopeo's. */
export async function byUmoci(address: string): Promise<Record<string, string>> {
  await using folder = await temporaryFolder()
  await copy(address, `oci:${folder.path}/layout:it`)
  await outputOf('umoci', 'unpack', '--rootless', '--image', `${folder.path}/layout:it`, `${folder.path}/bundle`)
  return await readTree(`${folder.path}/bundle/rootfs`)
}

/** What we make of an image. */
export async function byUs(client: RegistryClient, repository: string, tag: string): Promise<Record<string, string>> {
  await using store = await temporaryFolder()
  const image = await readImage(client, repository, tag)
  return await readTree(await unpackImage(client, image!, store.path))
}
