import type { Schemas } from '../../api/client.ts'

/** How a job stands. */
export type JobStatus = Schemas['Job']['status']

export const jobStatuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const satisfies JobStatus[]

/** Whether nothing about a job can change any more. */
export const isOver = (status: JobStatus): boolean => status !== 'Queued' && status !== 'Running'

const titles: Record<Schemas['Job']['type'], string> = {
  InvokeScript: 'Script',
  ModuleInstall: 'Installation of a module',
  ModuleUninstall: 'Removal of a module',
  PlatformUpdate: 'Platform update',
  PlatformRollback: 'Platform rollback',
}

/** What a job of a type is, in words. */
export const titleOfType = (type: Schemas['Job']['type']): string => titles[type]
