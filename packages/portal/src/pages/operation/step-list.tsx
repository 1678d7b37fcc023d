import { Circle, CircleCheck, CircleSlash, CircleX, LoaderCircle, type LucideIcon } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { classes } from '../../ui/class-names.ts'
import { durationText } from '../../ui/time.tsx'
import styles from './operation.module.css'
import { stepText } from './steps.ts'

type Step = Schemas['JobStep']

const looks: Record<Step['status'], [icon: LucideIcon, look: string | undefined]> = {
  Pending: [Circle, 'waiting'],
  Running: [LoaderCircle, 'busy'],
  Completed: [CircleCheck, 'good'],
  Failed: [CircleX, 'bad'],
  Skipped: [CircleSlash, 'waiting'],
}

export const StepList = ({ steps }: { steps: readonly Step[] }) => (
  <ol className={styles['steps']} aria-label="Steps">
    {steps.map((step) => (
      <StepItem key={step.name} {...step} />
    ))}
  </ol>
)

function StepItem({ name, status, message, startedAt, completedAt }: Step) {
  const [Icon, look] = looks[status]
  return (
    <li className={classes(styles['step'], look && styles[look])}>
      <Icon size={16} aria-hidden />
      <span>
        {stepText(name)} <span className="visually-hidden">({status})</span>
      </span>
      <span className={styles['duration']}>
        {startedAt !== undefined &&
          completedAt !== undefined &&
          durationText(Date.parse(completedAt) - Date.parse(startedAt))}
      </span>
      {message !== undefined && <span className={styles['message']}>{message}</span>}
    </li>
  )
}
