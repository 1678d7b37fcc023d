import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleCheck } from 'lucide-react'
import type { ReactNode } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import type { Schemas } from '../../api/client.ts'
import { Badge, StatusBadge } from '../../ui/badge.tsx'
import { DescriptionList } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Loading } from '../../ui/state.tsx'
import { durationText, Time } from '../../ui/time.tsx'
import { OperationProgress } from '../operation/operation-progress.tsx'
import type { Operation } from '../operation/use-operation.ts'
import { ModuleActions } from './module-actions.tsx'
import { ModuleEvents } from './module-events.tsx'
import styles from './modules.module.css'
import { type CatalogItem, type Module, type ModuleEntry, moduleQuery } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface ModuleDetailProps {
  moduleId: string
  /** The job to show, even if it has ended. The default is the running operation of the module. */
  jobId: string | undefined
  /** Undefined while the list is loading, and for unknown modules. */
  entry: ModuleEntry | undefined
  isListed: boolean
  onStarted: (jobId: string) => void
  onClose: () => void
}

export function ModuleDetail({ moduleId, jobId, entry, isListed, onStarted, onClose }: ModuleDetailProps) {
  const isInstalled = entry?.installed !== undefined
  const query = useQuery({ ...moduleQuery(moduleId), enabled: isInstalled })
  const mayReadJobs = useHasPermission('jobs:read')
  const isNotFound = !isInstalled || isApiError(query.error, 'module_not_found')
  const module = isNotFound ? undefined : query.data
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
      {(!isListed || query.isLoading) && <Loading what="the module" />}
      {query.error !== null && !isNotFound && <ErrorNote error={query.error} onRetry={() => void query.refetch()} />}
      {shownJob !== undefined && mayReadJobs && <OperationProgress key={shownJob} jobId={shownJob} title={titleOf} />}
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
          <VerifiedBadge {...(module ?? entry?.release ?? { verified: false })} />
        </p>
      )}
      {entry && (
        <ModuleActions entry={{ ...entry, installed: module }} describedBy={nameId} showsAll onStarted={onStarted} />
      )}
      <ModuleDetails module={module} release={entry?.release} />
    </Dialog>
  )
}

// For a module, the state `Running` is final, but `StatusBadge` would show it as in progress, as for a job.
const State = ({ state }: { state: Module['state'] | undefined }) =>
  state === 'Running' ? (
    <Badge variant="good" icon={CircleCheck}>
      Running
    </Badge>
  ) : (
    <StatusBadge status={state ?? 'Not installed'} />
  )

const typeTitles: Record<string, string> = { ModuleInstall: 'Installation', ModuleUninstall: 'Removal' }

function titleOf({ type, payload }: Operation): string {
  const version = typeof payload['version'] === 'string' ? ` of version ${payload['version']}` : ''
  return `${typeTitles[type] ?? type}${version}`
}

type Detail = Schemas['ModuleDetail']

const ModuleDetails = ({ module, release }: { module: Detail | undefined; release: CatalogItem | undefined }) => (
  <>
    <DescriptionList items={[...(module ? moduleDetails(module) : []), ...(release ? offerDetails(release) : [])]} />
    {module && (
      <>
        <section className={styles['part']} aria-label="Image">
          <h3>Image</h3>
          <CopyField label="Image" text={module.image} />
        </section>
        <Part title="Health checks" isEmpty={module.checks.length === 0} emptyText="No checks yet.">
          {module.checks.map((check) => (
            <li key={check.name} className={styles['item']}>
              <StatusBadge status={check.status} />
              <code>{check.name}</code> <span>{check.description}</span>
              <span className={styles['quiet']}>
                <Time at={check.checkedAt} />
              </span>
            </li>
          ))}
        </Part>
        <Part title="Navigation" isEmpty={module.navSlots.length === 0} emptyText="None">
          {module.navSlots.map(({ slotId, id, label, route }) => (
            <li key={`${slotId} ${id}`} className={styles['item']}>
              <Link to={route}>{label}</Link> <code>{route}</code>
            </li>
          ))}
        </Part>
        <ModuleEvents moduleId={module.id} declared={module.events} />
        <Part title="Background jobs" isEmpty={module.backgroundJobs.length === 0} emptyText="None">
          {module.backgroundJobs.map(({ id, description, intervalSeconds }) => (
            <li key={id} className={styles['item']}>
              <code>{id}</code> <span>{description}</span>
              <span className={styles['quiet']}>
                every {durationText(intervalSeconds * 1000).replace(/ 0 (?:s|min)$/, '')}
              </span>
            </li>
          ))}
        </Part>
      </>
    )}
  </>
)

function moduleDetails(module: Detail): (readonly [string, ReactNode])[] {
  const { version, isolation, permissionsRequired, apiBasePath, installedAt, updatedAt } = module
  return [
    ['Version', version],
    ['API', <code key="api">{apiBasePath}</code>],
    ['Isolation', isolation ?? 'Not running'],
    ['Sees permissions', permissionsRequired.length === 0 ? 'None' : permissionsRequired.join(', ')],
    ...(installedAt === undefined ? [] : ([['Installed', <Time key="installed" at={installedAt} />]] as const)),
    ['Changed', <Time key="updated" at={updatedAt} />],
  ]
}

const offerDetails = ({ version, catalogSource }: CatalogItem): (readonly [string, ReactNode])[] => [
  ['Catalog version', version],
  ['Source', <code key="source">{catalogSource}</code>],
]

interface PartProps {
  title: string
  isEmpty: boolean
  emptyText: string
  children: ReactNode
}

const Part = ({ title, isEmpty, emptyText, children }: PartProps) => (
  <section className={styles['part']} aria-label={title}>
    <h3>{title}</h3>
    {isEmpty ? <p className={styles['quiet']}>{emptyText}</p> : <ul className={styles['list']}>{children}</ul>}
  </section>
)
