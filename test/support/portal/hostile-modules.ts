import { readRuntimeFile } from '@platform/local/runtime-file'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { expectStatus } from '../../conformance/support/answer.ts'
import { inCatalog, over } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { waitFor } from '../wait-for.ts'
import { programOf } from '../author.ts'
import { moduleLabels, writtenManifest } from '../module-registry.ts'
import type { PlatformProcess } from '../platform.ts'
import { storedPayloads as texts } from './payloads.ts'

/** Lets a platform install unsigned modules. */
export const allowUnverified = { PLAT_ALLOW_UNVERIFIED_MODULES: 'true' }

/** Manifest parts with a payload in every text that the schema allows. */
export const hostileParts = {
  lines: texts,
  slots: texts
    .filter((text) => text.length <= 40)
    .map((label, index) => ({
      slotId: index % 2 === 0 ? ('nav.primary' as const) : ('nav.settings' as const),
      id: `entry-${index}`,
      label,
      icon: 'bug',
      route: '/modules/hostile' as const,
      order: 100 + index,
    })),
  jobs: texts.map((description, index) => ({ id: `job-${index}`, description, intervalSeconds: 3600 })),
  checks: texts.map((description, index) => ({ name: `check-${index}`, description })),
}

export type HostileParts = typeof hostileParts

const spec = {
  backgroundJobs: hostileParts.jobs,
  healthChecks: hostileParts.checks.map(({ name }) => ({ name, path: `/health/${name}`, tags: ['informational'] })),
}

/** Pushes modules with payloads to the platform's registry and installs `hostile`. Returns the failed job of `broken`. */
export async function hostileModules(platform: PlatformProcess, api: Platform): Promise<string> {
  const { registry } = await readRuntimeFile(platform.dataDir)
  const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => registry })
  const push = async (id: string, text: string, spec: object, command?: string) => {
    const repository = `modules/${id}`
    const metadata = { name: text, description: text, author: text, publisher: text, license: text }
    const image = `${registry.host}/${repository}:1.0.0`
    const content = JSON.stringify(writtenManifest(id, '1.0.0', { image, ...spec }, metadata))
    const { program, args } = await programOf(command)
    // A module does not see the settings of the tests, which select the payloads.
    const parts = command === undefined ? [] : [JSON.stringify(hostileParts)]
    const built = await buildImage({
      files: [
        { path: '/module.json', content },
        { path: '/app/main.mjs', content: program },
      ],
      config: { Entrypoint: ['node', '/app/main.mjs', ...parts, ...args], WorkingDir: '/app' },
      labels: moduleLabels(id),
    })
    await pushImage(client, repository, built, ['1.0.0'])
  }
  const [text = ''] = texts
  await push('hostile', text, { ...spec, navSlots: hostileParts.slots }, 'hostile')
  await push('broken', text, spec, 'hostile broken fails')
  for (const [index, text] of texts.entries()) await push(`offer-${index}`, text, {})

  const admin = await api.admin
  expectStatus(await admin.post('/api/v1/modules/catalog/scan'), 202)
  const last = `offer-${texts.length - 1}`
  await waitFor('catalog entries', async () => (await inCatalog(admin, last)) && inCatalog(admin, 'broken'))
  const install = async (id: string, status: string): Promise<string> => {
    const job = await over(api, expectStatus(await admin.post(`/api/v1/modules/${id}/install`, {}), 202))
    if (job.status !== status) throw new Error(`The installation of ${id} has ${job.status}: ${job.result?.output}`)
    return job.id
  }
  await install('hostile', 'Completed')
  return install('broken', 'Failed')
}
