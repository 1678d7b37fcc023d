import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import styles from './setup.module.css'
import { placeOf, type StepName, steps } from './steps.ts'

/** All steps: which are done, and lead back there; which is shown; which are to come. */
export function Progress({ step }: { step: StepName }) {
  const here = placeOf(step)
  return (
    <nav aria-label="Steps of the setup">
      <ol className={styles['steps']}>
        {steps.map(({ name, title }, place) => (
          <li key={name} aria-current={place === here ? 'step' : undefined}>
            <span className={styles['mark']} aria-hidden>
              {place < here ? <Check size={12} /> : place + 1}
            </span>
            {place < here ? (
              <Link to="/setup" search={{ step: name }}>
                {title}
              </Link>
            ) : (
              title
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}
