import { expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'
import { waitFor } from '../../support/wait-for.ts'

/** Modules through the API: what an administrator does with them, and what everybody sees of them. */

export const modulesPath = '/api/v1/modules'
export const catalogPath = `${modulesPath}/catalog`

/** A module as the catalog shows it; undefined where it does not. */
export async function inCatalog(client: Client, id: string): Promise<any> {
  return expectStatus(await client.get(catalogPath), 200).items.find((item: any) => item.id === id)
}

/** A job of the platform on itself once it is over, whatever became of it. */
export const over = (platform: Platform, { jobId }: { jobId: string }): Promise<any> =>
  waitFor(
    `${jobId} is over`,
    async () => {
      const job = await platform.job(jobId)
      return job.completedAt !== undefined && job
    },
    200,
  )

/** The entries of the navigation that a module has added. */
export async function entriesOf(client: Client, id: string): Promise<any[]> {
  const { items } = expectStatus(await client.get('/api/v1/portal/navigation'), 200)
  return items.filter(({ source }: any) => source === `module:${id}`)
}

/** The health checks of a module on the platform's health page. */
export async function checksOf({ anonymous }: Platform, id: string): Promise<any[]> {
  const { checks } = (await anonymous.get('/health/ready')).body
  return checks.filter(({ source }: any) => source === `module:${id}`)
}
