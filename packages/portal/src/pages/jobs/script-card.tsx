import { Card } from '../../ui/card.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import styles from './jobs.module.css'

export const ScriptCard = ({ script, title = 'Script' }: { script: string; title?: string }) => (
  <Card title={title} actions={<CopyButton text={script} label="Copy script" />}>
    <pre role="region" className={styles['script']} tabIndex={0} aria-label="Script of the job">
      {script}
    </pre>
  </Card>
)
