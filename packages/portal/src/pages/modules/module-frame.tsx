import { useRef, useState } from 'react'
import { Loading } from '../../ui/state.tsx'
import { useBridge } from './bridge/use-bridge.ts'
import styles from './module-frame.module.css'

interface ModuleFrameProps {
  src: string
  title: string
  moduleId: string
  apiBasePath: string | undefined
}

/**
 * An isolated frame: its scripts have an opaque origin, open no windows and cannot navigate the portal. They use the
 * platform through the bridge.
 */
export function ModuleFrame({ src, title, moduleId, apiBasePath }: ModuleFrameProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setIsLoaded] = useState(false)
  useBridge(frame, { moduleId, apiBasePath })
  return (
    <>
      <iframe
        ref={frame}
        src={src}
        title={title}
        sandbox="allow-scripts allow-forms"
        referrerPolicy="no-referrer"
        className={styles['frame']}
        onLoad={() => setIsLoaded(true)}
      />
      {!isLoaded && (
        <div className={styles['over']}>
          <Loading what="the module’s page" />
        </div>
      )}
    </>
  )
}
