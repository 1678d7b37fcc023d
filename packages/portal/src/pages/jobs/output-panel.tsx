import { Download } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { CheckField } from '../../ui/field.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { NodeChoice } from './node-choice.tsx'
import { OutputLines } from './output-lines.tsx'
import styles from './output-panel.module.css'
import { fileParts, rowsOf } from './output-row.ts'
import { useOutput } from './use-output.ts'

interface OutputPanelProps {
  jobId: string
  nameOf: (nodeId: string) => string
}

/** The live output of a job, always as plain text. */
export function OutputPanel({ jobId, nameOf }: OutputPanelProps) {
  const { parts, isFinished, failure } = useOutput(jobId)
  const [nodeId, setNodeId] = useState('')
  const [isFollowing, setIsFollowing] = useState(true)
  const nodeIds = useMemo(() => [...new Set(parts.map((part) => part.nodeId))], [parts])
  const rows = useMemo(() => rowsOf(parts, nodeId), [parts, nodeId])
  return (
    <Card
      title="Output"
      actions={
        <>
          {nodeIds.length > 1 && <NodeChoice {...{ nodeIds, nameOf, nodeId, setNodeId }} />}
          {!isFinished && <CheckField label="Follow" checked={isFollowing} onChange={setIsFollowing} />}
          <Button
            icon={Download}
            onClick={() => saveFile(`${jobId}.txt`, fileParts(rows), 'text/plain')}
            disabled={rows.length === 0}
          >
            Download
          </Button>
        </>
      }
    >
      {failure !== undefined && <ErrorNote error={failure} />}
      <OutputLines
        rows={rows}
        nameOf={nodeIds.length > 1 ? nameOf : undefined}
        isFollowing={isFollowing}
        onScrolled={setIsFollowing}
      />
      <p role="status" className={styles['state']}>
        {isFinished ? endText(rows.length) : 'The output updates live.'}
      </p>
    </Card>
  )
}

const endText = (length: number): string => (length === 0 ? 'No output.' : 'The output is complete.')
