import { useQuery } from '@tanstack/react-query'
import { CircleCheck } from 'lucide-react'
import { isApiError } from '../../api/api-error.ts'
import { useHasPermission } from '../../api/account.ts'
import { Badge, StatusBadge } from '../../ui/badge.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Loading } from '../../ui/state.tsx'
import { OperationProgress } from '../operation/operation-progress.tsx'
import type { Operation } from '../operation/use-operation.ts'
import { ModuleActions } from './module-actions.tsx'
import { ModuleDetails } from './module-details.tsx'
import styles from './modules.module.css'
import { type Module, type ModuleEntry, moduleQuery } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface ModuleDetailProps {
  moduleId: string
  /** The job to show, even if it has ended; by default the running one. */
  jobId: string | undefined
  /** Undefined for unknown modules and while loading. */
  entry: ModuleEntry | undefined
  isListed: boolean
  onBegun: (jobId: string) => void
  onClose: () => void
}

/** Details and progress of one module. */
export function ModuleDetail({ moduleId, jobId, entry, isListed, onBegun, onClose }: ModuleDetailProps) {
  const isInstalled = entry?.installed !== undefined
  const one = useQuery({ ...moduleQuery(moduleId), enabled: isInstalled })
  const mayFollow = useHasPermission('jobs:read')
  const isGone = !isInstalled || isApiError(one.error, 'module_not_found')
  const module = isGone ? undefined : one.data
  const shownJob = jobId ?? module?.jobId
  const nameId = `detail-${moduleId}`
  return (
    <Dialog
      isOpen
      isWide
      onClose={onClose}
      title={module?.name ?? entry?.name ?? moduleId}
      description={
        <span id={nameId}>
          {module?.description ?? entry?.description ?? (isListed ? 'This module does not exist.' : '')}
        </span>
      }
    >
      {(!isListed || one.isLoading) && <Loading what="the module" />}
      {one.error !== null && !isGone && <ErrorNote error={one.error} onRetry={() => void one.refetch()} />}
      {shownJob !== undefined && mayFollow && <OperationProgress key={shownJob} jobId={shownJob} title={titleOf} />}
      {module?.lastError && (
        <p className={styles['failure']} role="alert">
          <code>{module.lastError.code}</code> {module.lastError.message}
        </p>
      )}
      {module?.warnings.map((warning) => (
        <p key={warning} className={styles['warning']}>
          {warning}
        </p>
      ))}
      {(module ?? entry) && (
        <p className={styles['item']}>
          <State state={module?.state} />
          {module && <StatusBadge status={module.health} />}
          <VerifiedBadge {...(module ?? entry?.offer ?? { verified: false })} />
        </p>
      )}
      {entry && (
        <ModuleActions entry={{ ...entry, installed: module }} describedBy={nameId} isWhole onBegun={onBegun} />
      )}
      <ModuleDetails module={module} offer={entry?.offer} />
    </Dialog>
  )
}

/** Running is a busy status for jobs, but a good one for modules. */
const State = ({ state }: { state: Module['state'] | undefined }) =>
  state === 'Running' ? (
    <Badge tone="good" icon={CircleCheck}>
      Running
    </Badge>
  ) : (
    <StatusBadge status={state ?? 'Not installed'} />
  )

const titles: Record<string, string> = { ModuleInstall: 'Installation', ModuleUninstall: 'Removal' }

function titleOf({ type, payload }: Operation): string {
  const version = typeof payload['version'] === 'string' ? ` of version ${payload['version']}` : ''
  return `${titles[type] ?? type}${version}`
}
