import { readRuntimeFile } from '@platform/local/runtime-file'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { answered } from '../../conformance/support/answer.ts'
import { inCatalog, over } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { until } from '../../conformance/support/until.ts'
import { programOf } from '../author.ts'
import { moduleLabels, writtenManifest } from '../module-registry.ts'
import type { PlatformProcess } from '../platform.ts'
import { hostileParts, lines } from './hostile-parts.ts'

/** Settings under which a platform installs what nobody has signed. */
export const trusting = { PLAT_ALLOW_UNVERIFIED_MODULES: 'true' }

const { slots, jobs, checks } = hostileParts
const parts = {
  backgroundJobs: jobs,
  healthChecks: checks.map(({ name }) => ({ name, path: `/health/${name}`, tags: ['informational'] })),
}

/** Puts modules with hostile texts into a platform's own registry: `hostile` is installed, `broken` cannot be, the others are offered. Answers which job has failed. */
export async function hostileModules(platform: PlatformProcess, api: Platform): Promise<string> {
  const { registry } = await readRuntimeFile(platform.dataDir)
  const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => registry })
  const push = async (id: string, text: string, spec: object, command?: string) => {
    const repository = `modules/${id}`
    const metadata = { name: text, description: text, author: text, publisher: text, license: text }
    const image = `${registry.host}/${repository}:1.0.0`
    const content = JSON.stringify(writtenManifest(id, '1.0.0', { image, ...spec }, metadata))
    const { program, args } = await programOf(command)
    // Which texts are tried is a setting of the tests, which a module does not see.
    const words = command === undefined ? [] : [JSON.stringify(hostileParts)]
    const built = await buildImage({
      files: [
        { path: '/module.json', content },
        { path: '/app/main.mjs', content: program },
      ],
      config: { Entrypoint: ['node', '/app/main.mjs', ...words, ...args], WorkingDir: '/app' },
      labels: moduleLabels(id),
    })
    await pushImage(client, repository, built, ['1.0.0'])
  }
  const [script = ''] = lines
  await push('hostile', script, { ...parts, navSlots: slots }, 'hostile')
  await push('broken', script, parts, 'hostile broken fails')
  for (const [index, text] of lines.entries()) await push(`offer-${index}`, text, {})
  return installBoth(api)
}

async function installBoth(api: Platform): Promise<string> {
  const admin = await api.admin
  answered(await admin.post('/api/v1/modules/catalog/scan'), 202)
  const last = `offer-${lines.length - 1}`
  await until('the catalog has them', async () => (await inCatalog(admin, last)) && inCatalog(admin, 'broken'))
  const install = async (id: string, outcome: string): Promise<string> => {
    const job = await over(api, answered(await admin.post(`/api/v1/modules/${id}/install`, {}), 202))
    if (job.status !== outcome) throw new Error(`The installation of ${id} has ${job.status}: ${job.result?.output}`)
    return job.id
  }
  await install('hostile', 'Completed')
  return install('broken', 'Failed')
}
