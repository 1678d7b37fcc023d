import { Link } from '@tanstack/react-router'
import { DescriptionList } from '../../ui/card.tsx'
import styles from './setup.module.css'
import type { StepName } from './steps.ts'
import type { Setup } from './use-setup.ts'

/** All values except secrets, with links to their steps. */
export function Review({ setup: { answers } }: { setup: Setup }) {
  const { platformName, timezone, publicUrl, adminUsername, adminEmail } = answers
  return (
    <>
      <Part step="platform" title="Platform" facts={{ Name: platformName, 'Time zone': timezone }} />
      <Part step="network" title="Network" facts={{ 'Public address': publicUrl }} />
      <Part
        step="administrator"
        title="Administrator"
        facts={{ 'User name': adminUsername, 'E-mail': adminEmail, Password: 'as entered' }}
      />
      <Part step="token" title="One-time token" facts={{ Token: 'checked' }} />
    </>
  )
}

interface PartProps {
  step: StepName
  title: string
  facts: Record<string, string>
}

const Part = ({ step, title, facts }: PartProps) => (
  <div>
    <div className={styles['part']}>
      <h3>{title}</h3>
      <Link to="/setup" search={{ step }} aria-label={`Change: ${title}`}>
        Change
      </Link>
    </div>
    <DescriptionList items={Object.entries(facts)} />
  </div>
)
