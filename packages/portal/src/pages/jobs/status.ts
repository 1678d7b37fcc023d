import type { Schemas } from '../../api/client.ts'

export type JobStatus = Schemas['Job']['status']

export const jobStatuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const satisfies JobStatus[]

/** Whether the job has ended. */
export const isOver = (status: JobStatus): boolean => status !== 'Queued' && status !== 'Running'

const titles: Record<Schemas['Job']['type'], string> = {
  InvokeScript: 'Script',
  ModuleInstall: 'Module installation',
  ModuleUninstall: 'Module removal',
  PlatformUpdate: 'Platform update',
  PlatformRollback: 'Platform rollback',
}

export const titleOfType = (type: Schemas['Job']['type']): string => titles[type]
