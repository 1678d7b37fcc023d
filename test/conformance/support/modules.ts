import { expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'
import { waitFor } from '../../support/wait-for.ts'

export const modulesPath = '/api/v1/modules'
export const catalogPath = `${modulesPath}/catalog`

export async function findCatalogItem(client: Client, id: string): Promise<any> {
  return expectStatus(await client.get(catalogPath), 200).items.find((item: any) => item.id === id)
}

export const waitForJobEnd = (platform: Platform, { jobId }: { jobId: string }): Promise<any> =>
  waitFor(
    `the end of ${jobId}`,
    async () => {
      const job = await platform.job(jobId)
      return job.completedAt !== undefined && job
    },
    200,
  )

export async function navigationEntriesOf(client: Client, id: string): Promise<any[]> {
  const { items } = expectStatus(await client.get('/api/v1/portal/navigation'), 200)
  return items.filter(({ source }: any) => source === `module:${id}`)
}

export async function healthChecksOf({ anonymous }: Platform, id: string): Promise<any[]> {
  const { checks } = (await anonymous.get('/health/ready')).body
  return checks.filter(({ source }: any) => source === `module:${id}`)
}
