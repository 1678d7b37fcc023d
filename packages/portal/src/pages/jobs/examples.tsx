import { ButtonLink } from '../../ui/button.tsx'
import styles from './jobs.module.css'

interface Example {
  id: string
  title: string
  script: string
}

/** Scripts that a demo offers. They change nothing. */
const examples: readonly Example[] = [
  {
    id: 'system',
    title: 'System report',
    script: `#!/bin/sh
# The system, its load and its memory.
uname -srm
uptime
grep -E 'MemTotal|MemAvailable' /proc/meminfo 2>/dev/null || true
`,
  },
  {
    id: 'disk',
    title: 'Disk space',
    script: `#!/bin/sh
# The use of the disk, and a failure if it is above 90 percent.
df -h /
used=$(df -P / | awk 'NR == 2 { sub("%", "", $5); print $5 }')
[ "$used" -le 90 ] || { echo "The disk is $used percent full." >&2; exit 1; }
`,
  },
  {
    id: 'progress',
    title: 'Live output',
    script: `#!/bin/sh
# The page of a job shows each line while the script runs.
for step in 1 2 3 4 5 6 7 8; do
  echo "$(date +%T) step $step of 8 on $PLAT_NODE_NAME"
  sleep 1
done
`,
  },
]

export const exampleScript = (id: string | undefined): string =>
  examples.find((example) => example.id === id)?.script ?? ''

/** Links that open the form with an example for all clusters. */
export const ExampleLinks = () => (
  <nav aria-label="Example scripts" className={styles['examples']}>
    {examples.map(({ id, title }) => (
      <ButtonLink key={id} to="/jobs/new" search={{ all: true, example: id }}>
        {title}
      </ButtonLink>
    ))}
  </nav>
)
