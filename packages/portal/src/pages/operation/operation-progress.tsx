import { Circle, CircleCheck, CircleSlash, CircleX, LoaderCircle, type LucideIcon } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { ApiError } from '../../api/api-error.ts'
import type { Schemas } from '../../api/client.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { classes } from '../../ui/class-names.ts'
import { CopyButton } from '../../ui/copy.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Loading } from '../../ui/state.tsx'
import { Time, totalDurationText } from '../../ui/time.tsx'
import styles from './operation.module.css'
import { type Operation, useOperation } from './use-operation.ts'

interface OperationProgressProps {
  jobId: string
  title: (job: Operation) => ReactNode
  after?: (job: Operation) => ReactNode
}

/**
 * The steps and the result of an operation. Polls may fail while an update replaces functions, so transient failures
 * are not shown as errors.
 */
export function OperationProgress({ jobId, title, after }: OperationProgressProps) {
  const { data: job, error, failureCount, refetch } = useOperation(jobId)
  const headingId = useId()
  if (job === undefined) {
    const isTransient = error === null || (error instanceof ApiError && error.isTransient)
    return isTransient ? <Loading what="the progress" /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  }
  const isRunning = job.completedAt === undefined
  return (
    <section className={styles['operation']} aria-labelledby={headingId}>
      <div className={styles['head']}>
        <h3 id={headingId}>{title(job)}</h3>
        <StatusBadge status={job.status} />
        <span className={styles['duration']}>
          started <Time at={job.startedAt ?? job.createdAt} isAbsolute />
        </span>
      </div>
      <p role="status" className="visually-hidden">
        {announcement(job)}
      </p>
      <StepList steps={job.steps ?? []} />
      {isRunning && failureCount > 0 && (
        <p role="status" className={styles['away']}>
          The platform is temporarily unavailable during the update. This page continues automatically.
        </p>
      )}
      {!isRunning && <Outcome job={job} />}
      {!isRunning && after?.(job)}
    </section>
  )
}

function announcement({ status, steps = [] }: Operation): string {
  const runningStep = steps.find((step) => step.status === 'Running')
  return runningStep === undefined ? status : `${stepText(runningStep.name)}: in progress`
}

// For a failure, the code and the job id help to find the cause.
function Outcome({ job: { id, status, result, statusReason } }: { job: Operation }) {
  const text = result?.output || statusReason || status
  const code = /PLAT-[A-Z]+-\d{4}/.exec(text)?.[0]
  const hasFailed = status !== 'Completed'
  return (
    <div className={classes(styles['outcome'], hasFailed && styles['failed'])} role={hasFailed ? 'alert' : undefined}>
      <p>{text}</p>
      {hasFailed && (
        <p className={styles['foot']}>
          {code !== undefined && (
            <span>
              Error code <code>{code}</code>
            </span>
          )}
          <span>
            Job <code>{id}</code>
          </span>
          <CopyButton text={id} label="Copy job id" />
        </p>
      )}
    </div>
  )
}

type Step = Schemas['JobStep']

const variants: Record<Step['status'], [icon: LucideIcon, variant: string | undefined]> = {
  Pending: [Circle, 'waiting'],
  Running: [LoaderCircle, 'busy'],
  Completed: [CircleCheck, 'good'],
  Failed: [CircleX, 'bad'],
  Skipped: [CircleSlash, 'waiting'],
}

const StepList = ({ steps }: { steps: readonly Step[] }) => (
  <ol className={styles['steps']} aria-label="Steps">
    {steps.map((step) => (
      <StepItem key={step.name} {...step} />
    ))}
  </ol>
)

function StepItem(step: Step) {
  const { name, status, message } = step
  const [Icon, variant] = variants[status]
  return (
    <li className={classes(styles['step'], variant && styles[variant])}>
      <Icon size={16} aria-hidden />
      <span>
        {stepText(name)} <span className="visually-hidden">({status})</span>
      </span>
      <span className={styles['duration']}>{totalDurationText(step)}</span>
      {message !== undefined && <span className={styles['message']}>{message}</span>}
    </li>
  )
}

const stepTexts: Record<string, string> = {
  verify: 'Check the signature',
  deploy: 'Deploy',
  configure: 'Configure',
  start: 'Start',
  probe: 'Health check',
  publish: 'Publish routes',
  stop: 'Stop',
  remove: 'Remove',
  preflight: 'Check prerequisites',
  stage: 'Deploy the new version',
  smoke: 'Smoke test',
  'shift-10': 'Shift 10 % of traffic',
  'shift-50': 'Shift 50 % of traffic',
  'shift-100': 'Shift all traffic',
  commit: 'Finish',
}

// Later releases may have other steps, which are shown by name.
const stepText = (name: string): string => (Object.hasOwn(stepTexts, name) ? (stepTexts[name] ?? name) : name)
