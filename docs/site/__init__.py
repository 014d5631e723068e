"""The documents as a site that opens from disk: pages, tutorials and the reference, built strictly.

    python -m docs.site [FOLDER]   writes FOLDER/site/index.html; the folder is build/docs if none is named
    python -m docs.site --run      runs the notebooks too, and shows what their cells show (`make docs`)

The documents stay plain Markdown that any code host shows, and nothing in them is about the site.

    __main__.py    the command
    build.py       pages, settings and scripts side by side in a folder, and Zensical makes the site of them
    pages.py       every page by its name: documents, the reference, the gallery, and the settings that place them
    staged.py      a document as a page: links lead to pages, lists begin where Markdown wants them
    notebook.py    a notebook as a page, run or not
    reference.py   the reference, from the docstrings of the public names
    examples.py    examples in docstrings as code; an extension of mkdocstrings too
    gallery.py     every committed figure
    places.py      where the repository and the documents are
    mkdocs.yml     the settings, and the order of the pages
    offline.js     the search without a server

A link or an anchor that leads nowhere, a public name without a place in the reference and a page that
would fetch something end the build with an error. A new document needs nothing: it comes under
"More" until mkdocs.yml places it.
"""
