// One module of Preact, its hooks and htm: modules of the page name no packages, which would take an import map, and an import
// map is an inline script.
import { h, render, Fragment, createContext } from 'preact';
import { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import htm from 'htm';

export const html = htm.bind(h);
export { render, Fragment, createContext };
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState };
