import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import styles from './setup.module.css'
import { placeOf, type StepName, steps } from './steps.ts'

/** The steps; completed ones are links. */
export function Progress({ step }: { step: StepName }) {
  const here = placeOf(step)
  return (
    <nav aria-label="Setup steps">
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
