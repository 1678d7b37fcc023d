import { Ban, CircleAlert, CircleCheck, CircleDashed } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { Spinner } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { durationText } from '../../ui/time.tsx'
import styles from './jobs.module.css'

type Step = Schemas['JobStep']

const icons = { Pending: CircleDashed, Completed: CircleCheck, Failed: CircleAlert, Skipped: Ban }

export const JobSteps = ({ steps }: { steps: readonly Step[] }) => (
  <Card title="Steps">
    <ol className={styles['steps']}>
      {steps.map((step) => (
        <li key={step.name} data-status={step.status}>
          <StepIcon status={step.status} />
          <span>
            <strong>{step.name}</strong> <span className={styles['quiet']}>{stateText(step)}</span>
            {step.message !== undefined && <p className={styles['message']}>{step.message}</p>}
          </span>
        </li>
      ))}
    </ol>
  </Card>
)

function StepIcon({ status }: { status: Step['status'] }) {
  if (status === 'Running') return <Spinner />
  const Icon = icons[status]
  return <Icon size={16} aria-hidden />
}

function stateText({ status, startedAt, completedAt }: Step): string {
  if (startedAt === undefined || completedAt === undefined) return status
  return `${status} in ${durationText(Date.parse(completedAt) - Date.parse(startedAt))}`
}
